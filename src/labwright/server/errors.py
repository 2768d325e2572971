"""Every error leaves as `{"error": {"code", "message", "hint"}}` with the right status."""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from labwright.domain import errors
from labwright.llm.faults import ModelFault
from labwright.server.fault_words import refusal
from labwright.server.requests import lab_of
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
