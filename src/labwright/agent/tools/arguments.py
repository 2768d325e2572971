"""Check a call's arguments against the tool's schema. Errors say how to fix the call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from labwright.domain.errors import Invalid

_LONGEST_TEXT = 10_000  # unless the schema says otherwise
_LARGEST_OBJECT = 20_000  # characters and values
_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}
_SHORT_NAMES = {"run": "run_id", "runs": "run_ids", "sweep": "sweep_id", "plan": "plan_id", "wild": "wild_id"}


def checked(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without those that are null. `run` is accepted for `run_id`, and so on."""
    known = schema["properties"]
    arguments = {}
    for name, value in given.items():
        full = _SHORT_NAMES.get(name, name)
        name = full if name not in known and full in known and full not in given else name
        if value is not None:
            arguments[name] = value
    faults = [f"There is no argument {name}{_meant(name, known)}." for name in arguments if name not in known]
    hint = f"It takes {', '.join(known) or 'none'}." if faults else ""
    faults += [f"The argument {name} is missing." for name in schema["required"] if name not in arguments]
    if faults:
        raise Invalid(" ".join(faults), hint=hint)
    for name, value in arguments.items():
        _check(name, value, known[name])
    return arguments


def _meant(name: str, known: Iterable[str]) -> str:
    found = get_close_matches(name, known, 1) or [one for one in known if name in one.split("_")]
    return f"; perhaps {found[0]}" if found else ""


def _check(name: str, value: Any, schema: Mapping[str, Any]) -> None:
    kind = schema.get("type", "")
    is_number = kind in ("integer", "number")
    if kind and (not isinstance(value, _TYPES[kind][0]) or (is_number and isinstance(value, bool))):
        raise Invalid(f"{name} must be {_TYPES[kind][1]}.")
    if isinstance(value, str):
        _check_text(name, value, schema)
    if "enum" in schema and value not in schema["enum"]:
        raise Invalid(f"{name} cannot be {value!r:.60}.", hint=f"Choose: {', '.join(schema['enum'])}.")
    if is_number:
        _check_number(name, value, schema)
    if kind == "object":
        _check_object(name, value, schema)
    if kind == "array":
        if len(value) > schema.get("maxItems", len(value)):
            raise Invalid(f"{name} may have {schema['maxItems']} items at most, not {len(value)}.")
        if len(value) < schema.get("minItems", 0):
            raise Invalid(f"{name} must have {schema['minItems']} items at least.")
        for item in value:
            _check(f"each of {name}", item, schema.get("items", {}))


def _check_text(name: str, value: str, schema: Mapping[str, Any]) -> None:
    if "\0" in value:
        raise Invalid(f"{name} must not contain NUL characters.")
    if len(value) > (longest := schema.get("maxLength", _LONGEST_TEXT)):
        hint = "Write long text to a file, and pass the name of the file."
        raise Invalid(f"{name} may have {longest} characters at most, not {len(value)}.", hint=hint)
    if len(value) < schema.get("minLength", 0):
        raise Invalid(f"{name} must not be empty.")


def _check_number(name: str, value: float, schema: Mapping[str, Any]) -> None:
    if not math.isfinite(value):
        raise Invalid(f"{name} must be a finite number.")
    if value < schema.get("minimum", value):
        raise Invalid(f"{name} must be {schema['minimum']} or more.")
    if value > schema.get("maximum", value):
        raise Invalid(f"{name} must be {schema['maximum']} or less.")


def _check_object(name: str, value: dict[str, Any], schema: Mapping[str, Any]) -> None:
    if (size := _size(value)) > _LARGEST_OBJECT:
        raise Invalid(f"{name} is too large: {size} characters and values; {_LARGEST_OBJECT} are allowed.")
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for missing in (one for one in schema.get("required", ()) if one not in value):
        raise Invalid(f"{name}.{missing} is missing.")
    for key, item in value.items():
        if key in known:
            _check(f"{name}.{key}", item, known[key])
        elif others is False:
            raise Invalid(f"There is no {name}.{key}{_meant(key, known)}.", hint=f"It takes {', '.join(known)}.")
        elif isinstance(others, dict):
            _check(f"{name}.{key}", item, others)


def _size(value: Any) -> int:
    """Return the number of characters in all texts plus the number of other values."""
    if isinstance(value, dict):
        return sum(len(str(key)) + _size(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(_size, value))
    return len(value) if isinstance(value, str) else 1
