"""Errors people see. The docstring is the default message; `hint` says what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FieldPath = tuple[str | int, ...]


class LabwrightError(Exception):
    """Something went wrong inside Labwright."""

    code = "internal"
    hint = ""

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.hint = self.hint if hint is None else hint
        super().__init__(self.message)


class Invalid(LabwrightError):
    """The request cannot be carried out as written."""

    code = "invalid"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        field: FieldPath = (),
        faults: Sequence[tuple[FieldPath, str]] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.field = field  # where in the request it is, so that whoever wrote a file can be shown the line
        self.faults = faults or [(field, self.message)]  # each with its own place


class NotFound(LabwrightError):
    """There is nothing by that id."""

    code = "not_found"


class Conflict(LabwrightError):
    """The present state does not allow this."""

    code = "conflict"


class Unauthorized(LabwrightError):
    """A valid token is needed."""

    code = "unauthorized"
    hint = "Send the token from .labwright/token as X-Auth-Token, or as Authorization: Bearer."


class Forbidden(LabwrightError):
    """This token may not do that."""

    code = "forbidden"


class TooLarge(LabwrightError):
    """The request body is too large."""

    code = "too_large"


class StorageFailed(LabwrightError):
    """The state folder cannot be written."""

    code = "storage"
    hint = "Free disk space or make .labwright writable, then try again; nothing was changed."


class IllegalMove(Conflict):
    """A run cannot go from its present status to that one."""

    code = "illegal_move"


class ServerUnreachable(LabwrightError):
    """No Labwright server answers for this project."""

    code = "unreachable"
    hint = "Start one with: labwright up -d"


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


def describe_validation_error(fault: Mapping[str, Any]) -> str:
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
