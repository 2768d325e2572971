"""Return every error as `{"error": {"code", "message", "hint"}}` with its HTTP status."""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from labwright.domain import errors
from labwright.domain.errors import FieldPath, Invalid, describe_validation_error
from labwright.llm.faults import ModelFault
from labwright.server.models.fields import NOT_BLANK
from labwright.server.requests import lab_of
from labwright.settings import nearest
from labwright.store.database import DatabaseDamaged, is_damage

log = logging.getLogger(__name__)

_STATUS: list[tuple[type[errors.LabwrightError], int]] = [
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.Unauthorized, 401),
    (errors.Forbidden, 403),
    (errors.TooLarge, 413),
    (errors.Invalid, 422),
    (errors.StorageFailed, 507),
    (ModelFault, 502),
]

_DISK_REFUSES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}

_SEND_JSON = "Send the header Content-Type: application/json; with curl: -H 'Content-Type: application/json'."
_WHEN_MOVED = "In the new folder, run labwright down, then labwright up -d. Runs continue meanwhile."


def status_of(error: errors.LabwrightError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def body_of(code: str, message: str, hint: str = "") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "hint": hint}}


def answer(error: errors.LabwrightError) -> JSONResponse:
    body = body_of(error.code, error.message, error.hint)
    if isinstance(error, errors.Invalid) and error.field:
        body["error"]["field"] = list(error.field)
        body["error"]["faults"] = [{"field": list(field), "message": words} for field, words in error.faults]
    return JSONResponse(body, status_of(error))


def install(app: FastAPI) -> None:
    for kind, handle in _HANDLERS.items():
        app.add_exception_handler(kind, handle)


def respond(request: Request, error: Exception) -> JSONResponse:
    return next(handle for kind, handle in _HANDLERS.items() if isinstance(error, kind))(request, error)


def _known(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.LabwrightError)
    if status_of(error) >= 500:
        log.error("%s %s: %s", request.method, request.url.path, error)
    return answer(error)


def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):  # unparsed, since the header does not say JSON
        return answer(errors.Invalid("The Content-Type of the request is not JSON.", hint=_SEND_JSON))
    broken = next((fault for fault in error.errors() if fault["type"] == "json_invalid"), None)
    if broken:
        return answer(_no_json(str(error.body), broken))
    return answer(validation_error(request, error.errors(), error.body))


def _no_json(text: str, fault: dict[str, Any]) -> errors.Invalid:
    position = fault["loc"][-1]
    before = text[:position]
    line, column = before.count("\n") + 1, position - before.rfind("\n")
    message = f"The body is not valid JSON: {fault['ctx']['error']} at line {line}, column {column}."
    return errors.Invalid(message, hint="Send one JSON object. /docs lists its fields.")


def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, errors.LabwrightError):  # raised while the body was read
        return answer(error.__cause__)
    if error.status_code == 400:
        return answer(errors.Invalid("The body cannot be read.", hint="Send JSON in UTF-8, not nested too deeply."))
    if error.status_code == 404:
        return answer(errors.NotFound(f"There is no route {request.url.path}.", hint="See /docs for all routes."))
    code = "method_not_allowed" if error.status_code == 405 else "http"
    body = body_of(code, str(error.detail), "See /docs for all routes.")
    return JSONResponse(body, error.status_code, headers=error.headers)


def _storage(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s: %s", request.method, request.url.path, error)
    if is_damage(str(error)):
        return answer(DatabaseDamaged(f"The database is damaged: {error}."))
    return answer(errors.StorageFailed(f"The database does not respond: {error}."))


def _disk(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, OSError)
    paths = lab_of(request).paths
    if error.errno == errno.ENOENT and not paths.state.is_dir():
        return answer(errors.StorageFailed(f"The project is no longer at {paths.project}.", hint=_WHEN_MOVED))
    if error.errno not in _DISK_REFUSES:
        return _unexpected(request, error)
    log.error("%s %s: %s", request.method, request.url.path, error)
    return answer(errors.StorageFailed(f"The state folder cannot be written: {error.strerror}."))


def _too_deep(_request: Request, _error: Exception) -> JSONResponse:
    return answer(errors.Invalid("The JSON is nested too deeply."))


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    message = f"Internal error in Labwright: {type(error).__name__}."
    return JSONResponse(body_of("internal", message, "See the server's log in .labwright/logs."), 500)


_HANDLERS: dict[type[Exception], Callable[[Request, Exception], JSONResponse]] = {
    errors.LabwrightError: _known,
    RequestValidationError: _invalid,
    HTTPException: _http,
    sqlite3.Error: _storage,
    OSError: _disk,
    RecursionError: _too_deep,
    Exception: _unexpected,
}


_SHOWN = 5
_KNOWN_SHOWN = 20


def validation_error(request: Request, faults: Sequence[Any], body: Any) -> Invalid:
    """Return one error for all faults. Its field is that of the first fault."""
    field = getattr(request.scope.get("route"), "body_field", None)
    form = next(_forms_in(field.field_info.annotation), None) if field else None
    messages = list(_messages(list(faults), form, body).items())[:_SHOWN]
    named = [(place, f"{'.'.join(map(str, place)) or 'body'} {said}") for place, said in messages]
    words = "; ".join(text for _, text in named)
    place = named[0][0] if named else ()
    return Invalid(f"{words}.", hint=_hint(faults, form), field=place, faults=named)


def _messages(faults: list[Any], form: type[BaseModel] | None, body: Any) -> dict[FieldPath, str]:
    """Return messages by field. A misspelled name also explains the missing field."""
    unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    meant = {(*_place(fault)[:-1], _near(fault, form)) for fault in unknown}
    others = [fault for fault in faults if fault not in unknown]
    messages: dict[FieldPath, list[str]] = {}
    for fault in [*unknown, *others]:
        place = _place(fault)
        if fault["type"] == "missing" and place in meant:
            continue
        said = messages.setdefault(place if fault["type"] == "missing" else _within(body, place), [])
        said += [words] if (words := _message(fault)) not in said else []
    # Alternative types are joined, as in `must be a whole number or a list`.
    return {
        place: " or ".join([said[0], *(words.removeprefix("must be ") for words in said[1:])])
        for place, said in messages.items()
    }


def _message(fault: Any) -> str:
    if fault["type"] == "string_pattern_mismatch" and fault["ctx"]["pattern"] == NOT_BLANK:
        return "is empty"
    return describe_validation_error(fault)


def _hint(faults: Sequence[Any], form: type[BaseModel] | None) -> str:
    unknown = next((fault for fault in faults if fault["type"] == "extra_forbidden"), None)
    known = _names(form, _place(unknown)) if unknown else []
    if not unknown or not known:
        return _fields_of_object(faults, form) or "See /docs for the fields and their types."
    near = _near(unknown, form)
    shown = ", ".join(sorted(known)[:_KNOWN_SHOWN])
    return f"Did you mean {near}?" if near else f"Known fields: {shown}{', …' if len(known) > _KNOWN_SHOWN else ''}."


def _fields_of_object(faults: Sequence[Any], form: type[BaseModel] | None) -> str:
    """Return the fields of an object that was sent as a plain value, such as `metric: loss`."""
    place: FieldPath = next((_place(fault) for fault in faults if fault["type"].startswith("model_")), ())
    names = _names(form, (*place, "")) if place else []
    return f"Fields of {place[-1]}: {', '.join(names)}." if names else ""


def _near(fault: Any, form: type[BaseModel] | None) -> str:
    place = _place(fault)
    return nearest(str(place[-1]), _names(form, place)) if place else ""


def _names(form: type[BaseModel] | None, place: FieldPath) -> list[str]:
    """Return the fields of the object that contains this field."""
    for part in place[:-1]:
        field = form.model_fields.get(str(part)) if form else None
        form = next(_forms_in(field.annotation), None) if field else None
    return list(form.model_fields) if form else []


def _forms_in(annotation: Any) -> Any:
    """Yield the models in a type, such as `PlanIn` in `PlanIn | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _forms_in(part)


def _place(fault: Any) -> FieldPath:
    return tuple(part for part in fault["loc"] if part != "body")


def _within(body: Any, place: FieldPath) -> FieldPath:
    """Return the part of the path that the request contains. The rest names a type in a union."""
    for depth, part in enumerate(place):
        try:
            body = body[part]
        except (LookupError, TypeError):
            return place if depth == 0 else place[:depth]
    return place
