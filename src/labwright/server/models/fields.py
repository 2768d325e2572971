"""The types of request fields, with their limits."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MAX_JSON_BYTES = 64 * 1024
MAX_JSON_DEPTH = 20
_SURROGATE = re.compile("[\ud800-\udfff]")
BIG = 2**53  # beyond this a JSON number is not exact everywhere


def _plain_text(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain NUL characters")
    return whole_characters(text)


def whole_characters(text: str) -> str:
    if not text.isascii() and _SURROGATE.search(text):
        raise ValueError("must be valid Unicode, without unpaired surrogates")
    return text


def _plain_json(value: dict[str, Any]) -> dict[str, Any]:
    if _depth(value) > MAX_JSON_DEPTH:
        raise ValueError(f"may be nested at most {MAX_JSON_DEPTH} levels deep")
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        raise ValueError("must be plain JSON: no NaN, no Infinity, valid Unicode") from error
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f"may have at most {MAX_JSON_BYTES >> 10} KB")
    return value


def _depth(value: object, level: int = 1) -> int:
    if level > MAX_JSON_DEPTH or not isinstance(value, dict | list):
        return level
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(item, level + 1) for item in inner), default=level)


NOT_BLANK = r"\S"
Text = Annotated[str, AfterValidator(_plain_text)]
Name = Annotated[Text, Field(min_length=1, max_length=200)]
Tag = Annotated[Text, Field(min_length=1, max_length=100)]
Reference = Annotated[Text, Field(min_length=1, max_length=200, description="id, name, beginning of an id, or `last`")]
Id = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_.@:-]+$")]
PlainJson = Annotated[dict[str, Any], AfterValidator(_plain_json)]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
EnvValue = Annotated[Text, Field(max_length=100_000)]
Environment = Annotated[dict[EnvName, EnvValue], Field(max_length=2000)]
# A shell also exports names that are not variable names, such as `BASH_FUNC_module%%` for functions.
CallerEnvironment = Annotated[
    dict[Annotated[Text, Field(pattern=r"^[^=]+$", max_length=200)], EnvValue], Field(max_length=2000)
]


class In(BaseModel):
    model_config = ConfigDict(extra="forbid")
