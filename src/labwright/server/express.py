"""The express lane: the most frequent calls bypass the framework, which costs several times more than they do.

A request that is clearly valid is parsed by its model and handled by its route's function. Any other request takes the
regular path, so that there is one set of rules and error messages.

In a burst of short calls, the event loop handles them itself: passing a call to a thread takes longer than the call.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import FastAPI, Response
from fastapi.params import Depends
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from labwright.domain.errors import LabwrightError
from labwright.server import errors
from labwright.server.requests import has_full_ids

_MAX_KEY = 200  # the limit of the Idempotency-Key header
_SHORT_SECONDS = 0.002  # a call may block the event loop this long
_PROOF_CALLS = 16
_BURST_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Express:
    """A `POST` route in the express lane, with its regular function, model and permission."""

    path: re.Pattern[str]
    endpoint: Callable[..., Response]
    form: type[BaseModel]
    permission: Depends
    parse: Callable[[bytes], Any]
    takes_key: bool = False

    async def prepare(self, request: Request, body: bytes) -> Callable[[], Response] | None:
        """Return the call with its arguments, or None if the request must take the regular path."""
        arguments: dict[str, Any] = dict(request.path_params)
        key = request.headers.get("idempotency-key")
        if self.takes_key and key is not None:
            if not 0 < len(key) <= _MAX_KEY:
                return None
            arguments["key"] = key
        try:
            await self.permission.dependency(request)  # type: ignore[misc]
            sent = self.parse(body)
            if not has_full_ids(request.path_params, sent):
                return None
            form = self.form.model_validate(sent)
        except (LabwrightError, ValidationError, ValueError, RecursionError):
            return None
        return partial(self.endpoint, body=form, request=request, **arguments)


class _Pace:
    """The duration of the last calls of one route. After a long call or a pause, calls count as long again: code may
    have changed, which requires a snapshot."""

    def __init__(self) -> None:
        self._short_calls = 0
        self._last = 0.0

    def is_short(self) -> bool:
        return self._short_calls >= _PROOF_CALLS and time.monotonic() - self._last < _BURST_SECONDS

    def timed(self, call: Callable[[], Response]) -> Response:
        started = time.monotonic()
        try:
            return call()
        finally:
            ended = time.monotonic()
            is_short = ended - started < _SHORT_SECONDS and ended - self._last < _BURST_SECONDS
            self._short_calls = self._short_calls + 1 if is_short else 0
            self._last = ended


class ExpressLane:
    def __init__(self, app: FastAPI, *, routes: Iterable[Express], threads: int, must_wait: Callable[[], bool]) -> None:
        """`must_wait` returns whether a call would block now; then a thread runs it."""
        self._app = app
        self._paces = {route: _Pace() for route in routes}
        self._must_wait = must_wait
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="express")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._route_of(scope)
        if found is None:
            await self._app(scope, receive, send)
            return
        route, path_params = found
        request = Request({**scope, "app": self._app, "path_params": path_params}, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        call = await route.prepare(request, body)
        if call is None:
            await self._app(scope, _replay(body), send)
            return
        response = await self._respond(request, call, self._paces[route])
        await response(scope, receive, send)

    def _route_of(self, scope: Scope) -> tuple[Express, dict[str, str]] | None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            return None
        for route in self._paces:
            if match := route.path.fullmatch(scope["path"]):
                headers = dict(scope["headers"])
                is_plain = headers.get(b"content-type") == b"application/json" and b"content-length" in headers
                return (route, match.groupdict()) if is_plain else None
        return None

    async def _respond(self, request: Request, call: Callable[[], Response], pace: _Pace) -> Response:
        try:
            if pace.is_short() and not self._must_wait():
                return pace.timed(call)
            return await asyncio.get_running_loop().run_in_executor(self._pool, pace.timed, call)
        except Exception as error:  # noqa: BLE001 - handled like on the regular path
            return errors.respond(request, error)


def _replay(body: bytes) -> Receive:
    """Return the body that was already read."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
