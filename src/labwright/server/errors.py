"""Every error leaves as `{"error": {"code", "message", "hint"}}` with the right status."""

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

_SAY_JSON = "Send the header Content-Type: application/json; with curl: -H 'Content-Type: application/json'."
_WHEN_MOVED = "Go to where it was moved to: labwright down, then labwright up -d. What runs goes on meanwhile."


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
    if isinstance(error.body, bytes):  # left as it came, since no header says that it is JSON
        return answer(errors.Invalid("The body is not said to be JSON.", hint=_SAY_JSON))
    broken = next((fault for fault in error.errors() if fault["type"] == "json_invalid"), None)
    if broken:
        return answer(_no_json(str(error.body), broken))
    return answer(refusal(request, error.errors(), error.body))


def _no_json(text: str, fault: dict[str, Any]) -> errors.Invalid:
    position = fault["loc"][-1]
    before = text[:position]
    line, column = before.count("\n") + 1, position - before.rfind("\n")
    words = f"The body is not JSON: {fault['ctx']['error']} at line {line}, column {column}."
    return errors.Invalid(words, hint="Send one JSON object; its fields are in /docs.")


def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, errors.LabwrightError):  # raised while the body was read
        return answer(error.__cause__)
    if error.status_code == 400:
        return answer(errors.Invalid("The body cannot be read.", hint="Send JSON in UTF-8, not nested too deeply."))
    if error.status_code == 404:
        return answer(errors.NotFound(f"There is no {request.url.path} here.", hint="See /docs for what there is."))
    code = "method_not_allowed" if error.status_code == 405 else "http"
    body = body_of(code, str(error.detail), "See /docs for what there is.")
    return JSONResponse(body, error.status_code, headers=error.headers)


def _storage(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s: %s", request.method, request.url.path, error)
    if is_damage(str(error)):
        return answer(DatabaseDamaged(f"The database is damaged: {error}."))
    return answer(errors.StorageFailed(f"The database does not answer: {error}."))


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
    message = f"Labwright hit a fault of its own: {type(error).__name__}."
    return JSONResponse(body_of("internal", message, "The server's log (.labwright/logs) has the details."), 500)


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


def refusal(request: Request, faults: Sequence[Any], body: Any) -> Invalid:
    """One sentence for all of them; the first is the one that is pointed at."""
    form = _form_of(request)
    told = list(_told(list(faults), form, body).items())[:_SHOWN]
    named = [(place, f"{'.'.join(map(str, place)) or 'body'} {said}") for place, said in told]
    words = "; ".join(text for _, text in named)
    place = named[0][0] if named else ()
    return Invalid(f"{words}.", hint=_hint(faults, form), field=place, faults=named)


def _told(faults: list[Any], form: type[BaseModel] | None, body: Any) -> dict[FieldPath, str]:
    """By place. A name that is nearly right stands for the field that is missing without it."""
    unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    meant = {(*_place(fault)[:-1], _near(fault, form)) for fault in unknown}
    others = [fault for fault in faults if fault not in unknown]
    told: dict[FieldPath, list[str]] = {}
    for fault in [*unknown, *others]:
        place = _place(fault)
        if fault["type"] == "missing" and place in meant:
            continue
        said = told.setdefault(place if fault["type"] == "missing" else _within(body, place), [])
        said += [words] if (words := _words(fault)) not in said else []
    return {place: _either(said) for place, said in told.items()}


def _either(said: list[str]) -> str:
    """`must be a whole number or a list`: what each of several forms of a value would need."""
    first, *more = said
    return " or ".join([first, *(words.removeprefix("must be ") for words in more)])


def _words(fault: Any) -> str:
    if fault["type"] == "string_pattern_mismatch" and fault["ctx"]["pattern"] == NOT_BLANK:
        return "is empty"
    return describe_validation_error(fault)


def _hint(faults: Sequence[Any], form: type[BaseModel] | None) -> str:
    unknown = next((fault for fault in faults if fault["type"] == "extra_forbidden"), None)
    known = _names(form, _place(unknown)) if unknown else []
    if not unknown or not known:
        return _fields_wanted(faults, form) or "The fields and their types are in /docs."
    near = _near(unknown, form)
    shown = ", ".join(sorted(known)[:_KNOWN_SHOWN])
    return f"Did you mean {near}?" if near else f"Known: {shown}{', …' if len(known) > _KNOWN_SHOWN else ''}."


def _fields_wanted(faults: Sequence[Any], form: type[BaseModel] | None) -> str:
    """For `metric: loss`, where a metric has a key and a goal."""
    place: FieldPath = next((_place(fault) for fault in faults if fault["type"].startswith("model_")), ())
    names = _names(form, (*place, "")) if place else []
    return f"{place[-1]} has these: {', '.join(names)}." if names else ""


def _near(fault: Any, form: type[BaseModel] | None) -> str:
    place = _place(fault)
    return nearest(str(place[-1]), _names(form, place)) if place else ""


def _names(form: type[BaseModel] | None, place: FieldPath) -> list[str]:
    """The fields beside which this one stands."""
    for part in place[:-1]:
        field = form.model_fields.get(str(part)) if form else None
        form = next(_forms_in(field.annotation), None) if field else None
    return list(form.model_fields) if form else []


def _forms_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _forms_in(part)


def _form_of(request: Request) -> type[BaseModel] | None:
    body = getattr(request.scope.get("route"), "body_field", None)
    return next(_forms_in(body.field_info.annotation), None) if body else None


def _place(fault: Any) -> FieldPath:
    return tuple(part for part in fault["loc"] if part != "body")


def _within(body: Any, place: FieldPath) -> FieldPath:
    """As far as the request has it: what follows names a kind of value, which only the form knows."""
    for depth, part in enumerate(place):
        try:
            body = body[part]
        except (LookupError, TypeError):
            return place if depth == 0 else place[:depth]
    return place
