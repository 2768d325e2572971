"""A model's arguments against what a tool takes: said in words that let it mend them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labwright.domain.errors import Invalid

_LONGEST_TEXT = 10_000  # unless a tool says otherwise
_LARGEST_OBJECT = 20_000  # characters and values
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def checked(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """What is null counts as left out."""
    arguments = {name: value for name, value in given.items() if value is not None}
    known = schema["properties"]
    for name in arguments:
        if name not in known:
            raise Invalid(f"There is no argument {name!r}.", hint=f"It takes: {', '.join(known) or 'nothing'}.")
    for name in schema["required"]:
        if name not in arguments:
            raise Invalid(f"The argument {name!r} is missing.", hint=str(known[name].get("description", "")))
    for name, value in arguments.items():
        _check(name, value, known[name])
    return arguments


def _check(name: str, value: Any, wanted: Mapping[str, Any]) -> None:
    kind = wanted.get("type", "")
    is_number = kind in ("integer", "number")
    if kind and (not isinstance(value, _TYPES[kind]) or (is_number and isinstance(value, bool))):
        raise Invalid(f"{name} must be of type {kind}, not {value!r:.60}.")
    if isinstance(value, str) and "\0" in value:
        raise Invalid(f"{name} must not hold NUL characters.")
    if isinstance(value, str) and len(value) > (longest := wanted.get("maxLength", _LONGEST_TEXT)):
        hint = "Write what is long into a file, and name that."
        raise Invalid(f"{name} may have {longest} characters at most, not {len(value)}.", hint=hint)
    if "enum" in wanted and value not in wanted["enum"]:
        raise Invalid(f"{name} cannot be {value!r:.60}.", hint=f"Choose: {', '.join(wanted['enum'])}.")
    if is_number and not wanted.get("minimum", value) <= value <= wanted.get("maximum", value):
        raise Invalid(f"{name} must be between {wanted['minimum']} and {wanted['maximum']}, not {value}.")
    if kind == "object" and (size := _size(value)) > _LARGEST_OBJECT:
        raise Invalid(f"{name} is too large: {size} characters and values, of {_LARGEST_OBJECT} at most.")
    if kind == "array":
        if len(value) > wanted.get("maxItems", len(value)):
            raise Invalid(f"{name} may hold {wanted['maxItems']} at most.")
        for item in value:
            _check(f"each of {name}", item, wanted.get("items", {}))


def _size(value: Any) -> int:
    """Of texts their characters, of all else each value."""
    if isinstance(value, dict):
        return sum(len(str(key)) + _size(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(_size, value))
    return len(value) if isinstance(value, str) else 1
