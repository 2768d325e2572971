"""Errors that users see. The docstring is the default message; `hint` says what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FieldPath = tuple[str | int, ...]


class LabwrightError(Exception):
    """An internal error occurred in Labwright."""

    code = "internal"
    hint = ""

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.hint = self.hint if hint is None else hint
        super().__init__(self.message)


class Invalid(LabwrightError):
    """The request is not valid."""

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
        self.field = field  # the path in the request, so that the CLI can point to the line of a file
        self.faults = faults or [(field, self.message)]  # each fault with its own path


class NotFound(LabwrightError):
    """There is nothing with that id."""

    code = "not_found"


class Conflict(LabwrightError):
    """The current state does not allow this."""

    code = "conflict"


class Unauthorized(LabwrightError):
    """This needs a valid token."""

    code = "unauthorized"
    hint = "Send the token from .labwright/token in X-Auth-Token or in Authorization: Bearer."


class Forbidden(LabwrightError):
    """This token does not allow that."""

    code = "forbidden"


class TooLarge(LabwrightError):
    """The request body is too large."""

    code = "too_large"


class StorageFailed(LabwrightError):
    """The state folder is not writable."""

    code = "storage"
    hint = "Free disk space or make .labwright writable, then try again. Nothing was changed."


class IllegalMove(Conflict):
    """The current status does not allow this change."""

    code = "illegal_move"


class ServerUnreachable(LabwrightError):
    """No Labwright server is running for this project."""

    code = "unreachable"
    hint = "Start it with: labwright up -d"


_MUST_BE = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite_number": "must be a number",
    "bool": "must be true or false",
    "string": "must be text",
    "list": "must be a list",
    "dict": "must be an object with fields",
    "model_attributes": "must be an object with fields",
    "model": "must be an object with fields",
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

_LENGTHS = ("too_long", "too_short")  # kinds that pydantic uses for lists and for text


def describe_validation_error(fault: Mapping[str, Any]) -> str:
    """Describe what is wrong with a value that pydantic refused, as text after the name of the field."""
    kind, context = fault["type"], fault.get("ctx") or {}
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is not known"
    if kind in ("literal_error", "enum"):
        return f"must be {context['expected']}"
    if kind == "string_pattern_mismatch":
        return f"does not match {context['pattern']}"
    if kind in _LIMITS:
        name, form = _LIMITS[f"string_{kind}" if isinstance(fault.get("input"), str) and kind in _LENGTHS else kind]
        return form.format(_plain(context[name]))
    if kind == "value_error":
        return str(context["error"])
    family = next((family for family in _MUST_BE if kind.startswith(f"{family}_") or kind == family), None)
    return _MUST_BE[family] if family else f"is refused: {fault['msg']}"


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
