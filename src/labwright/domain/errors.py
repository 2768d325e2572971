"""Errors people see. The docstring is the default message; `hint` says what to do next."""

from __future__ import annotations

from collections.abc import Sequence

Place = tuple[str | int, ...]


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
        field: Place = (),
        faults: Sequence[tuple[Place, str]] = (),
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
