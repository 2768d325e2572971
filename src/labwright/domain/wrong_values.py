"""What is wrong with a value that pydantic refused, in our own words. Knows its reports, and needs none of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MUST_BE = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite_number": "must be a number",
    "bool": "must be true or false",
    "string": "must be text",
    "list": "must be a list",
    "dict": "must have fields of its own",
    "model_attributes": "must have fields of its own",
    "model": "must have fields of its own",
}
_LIMITS = {
    "greater_than_equal": ("ge", "must be {} or more"),
    "greater_than": ("gt", "must be greater than {}"),
    "less_than_equal": ("le", "must be {} or less"),
    "less_than": ("lt", "must be less than {}"),
    "string_too_long": ("max_length", "is too long: {} characters at most"),
    "string_too_short": ("min_length", "is too short: {} or more characters"),
    "too_long": ("max_length", "has too many entries: {} at most"),
    "too_short": ("min_length", "has too few entries: {} at least"),
}

_LENGTHS = ("too_long", "too_short")  # of lists, and of text that is checked further


def fault_in_words(fault: Mapping[str, Any]) -> str:
    """Behind the name of the field."""
    kind, context = fault["type"], fault.get("ctx") or {}
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is not known"
    if kind in ("literal_error", "enum"):
        return f"must be {context['expected']}"
    if kind == "string_pattern_mismatch":
        return f"does not have the form {context['pattern']}"
    if kind in _LIMITS:
        name, form = _LIMITS[f"string_{kind}" if isinstance(fault.get("input"), str) and kind in _LENGTHS else kind]
        return form.format(_plain(context[name]))
    if kind == "value_error":
        return str(context["error"])
    family = next((family for family in _MUST_BE if kind.startswith(f"{family}_") or kind == family), None)
    return _MUST_BE[family] if family else f"is refused: {fault['msg']}"


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
