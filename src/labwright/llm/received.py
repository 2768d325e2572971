"""Clean up text and JSON that a model sent, so that they can be stored, shown and sent back."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

_DEEPEST = 32
_LARGEST = 2**63
_LONGEST_NAME = 64  # the limit of every provider
_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_OBJECT = 1_000_000  # characters; no useful answer comes near it
_EXCERPT = 2000  # characters kept of text that is not a JSON object


class CharacterJoiner:
    """Join text that arrives in pieces: some servers cut in the middle of a character, or send half of one."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, text: str) -> str:
        """Return the complete characters so far and keep half a character for the next piece."""
        text = f"{self._half}{text}"
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return whole_characters(text[: len(text) - len(self._half)])

    def rest(self) -> str:
        return whole_characters(self._half)


def whole_characters(text: str) -> str:
    """Join surrogate pairs to one character and replace single surrogates with U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def read_object(text: str) -> dict[str, Any] | None:
    """Return a standard JSON object of reasonable size, or None for anything else."""
    if len(text) > _LONGEST_OBJECT:
        return None
    try:
        found = json.loads(text, parse_constant=_refuse, parse_float=_number, parse_int=_whole_number)
        return _checked(found, 0) if isinstance(found, dict) else None
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _number(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits[:20])


def _whole_number(digits: str) -> int:
    value = int(digits)
    return value if -_LARGEST <= value < _LARGEST else _refuse(digits[:20])


def _checked(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError("the object is nested too deeply")
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {whole_characters(name): _checked(item, depth + 1) for name, item in value.items()}
    return [_checked(item, depth + 1) for item in value] if isinstance(value, list) else value


def excerpt(text: str) -> str:
    """Return enough of the text to show the model what it sent."""
    return whole_characters(text[:_EXCERPT])


def valid_tool_name(name: str) -> str:
    """Return a name that every provider accepts in later requests. Names of existing tools do not change."""
    return _INVALID_IN_NAME.sub("_", name)[:_LONGEST_NAME] or "unnamed"
