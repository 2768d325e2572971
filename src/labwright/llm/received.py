"""What a model sent, as values that can be stored, shown and sent back. Whatever it is, a conversation goes on."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

_DEEPEST = 32
_LARGEST = 2**63
_LONGEST_NAME = 64  # what every provider takes back
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_OBJECT = 1_000_000  # characters; no answer of use comes near it
_NO_OBJECT = 2000  # characters that are kept of what is no object


class Characters:
    """Text that comes in pieces: some servers cut in the middle of a character, or send half of one."""

    def __init__(self) -> None:
        self._half = ""

    def whole(self, text: str) -> str:
        text = f"{self._half}{text}"
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return whole_characters(text[: len(text) - len(self._half)])

    def rest(self) -> str:
        return whole_characters(self._half)


def whole_characters(text: str) -> str:
    """Halves that belong together become one character, others the sign for what cannot be read."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def read_object(text: str) -> dict[str, Any] | None:
    """A JSON object, as the standard has it and within reason; None for all else."""
    if len(text) > _LONGEST_OBJECT:
        return None
    try:
        found = json.loads(text, parse_constant=_refuse, parse_float=_number, parse_int=_whole_number)
        return _checked(found, 0) if isinstance(found, dict) else None
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _number(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits[:20])


def _whole_number(digits: str) -> int:
    value = int(digits)
    return value if -_LARGEST <= value < _LARGEST else _refuse(digits[:20])


def _checked(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {whole_characters(name): _checked(item, depth + 1) for name, item in value.items()}
    return [_checked(item, depth + 1) for item in value] if isinstance(value, list) else value


def no_object(text: str) -> str:
    """As much of it as tells the model what it sent."""
    return whole_characters(text[:_NO_OBJECT])


def tool_name(name: str) -> str:
    """One that no provider refuses when it is told of the call later; of tools that are there it changes none."""
    return _NO_NAME.sub("_", name)[:_LONGEST_NAME] or "unnamed"
