"""The express lane: calls that come by the thousand pass the framework by, which costs several times what they do.

A request that is plainly right is read by its model and answered by its route's own function. Whatever is unusual about
one, it goes the ordinary way with its body and gets the ordinary answer: there is one set of rules and of words.

Of a burst of short calls all but the first are answered on the event loop itself: handing one to a thread, and its
answer back, takes longer than the call.
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

_MAX_KEY = 200  # as the ordinary way has it for Idempotency-Key
_SHORT_SECONDS = 0.002  # so long may one call hold up all others
_PROOF_CALLS = 16
_BURST_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Express:
    """A `POST` route that may take the lane: the same function, form and permission as on the ordinary way."""

    path: re.Pattern[str]
    endpoint: Callable[..., Response]
    form: type[BaseModel]
    permission: Depends
    parse: Callable[[bytes], Any]
    takes_key: bool = False

    async def prepare(self, request: Request, body: bytes) -> Callable[[], Response] | None:
        """The call with its arguments, or None if anything about the request is unusual."""
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
    """How long the last calls of one route took. What took long once, or was not asked for a while, has to prove itself
    anew: code may have been edited since, which takes a snapshot."""

    def __init__(self) -> None:
        self._short_calls = 0
        self._last = 0.0

    def is_short(self) -> bool:
        return self._short_calls >= _PROOF_CALLS and time.monotonic() - self._last < _BURST_SECONDS

    def timed(self, call: Callable[[], Response]) -> Response:
        began = time.monotonic()
        try:
            return call()
        finally:
            ended = time.monotonic()
            goes_on = ended - began < _SHORT_SECONDS and ended - self._last < _BURST_SECONDS
            self._short_calls = self._short_calls + 1 if goes_on else 0
            self._last = ended


class ExpressLane:
    def __init__(self, app: FastAPI, *, routes: Iterable[Express], threads: int, must_wait: Callable[[], bool]) -> None:
        """`must_wait` tells whether a call would now stand in line, which only a thread may."""
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
            await self._app(scope, _again(body), send)
            return
        response = await self._answer(request, call, self._paces[route])
        await response(scope, receive, send)

    def _route_of(self, scope: Scope) -> tuple[Express, dict[str, str]] | None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            return None
        for route in self._paces:
            if match := route.path.fullmatch(scope["path"]):
                return (route, match.groupdict()) if _is_plain(scope) else None
        return None

    async def _answer(self, request: Request, call: Callable[[], Response], pace: _Pace) -> Response:
        try:
            if pace.is_short() and not self._must_wait():
                return pace.timed(call)
            return await asyncio.get_running_loop().run_in_executor(self._pool, pace.timed, call)
        except Exception as error:  # noqa: BLE001 - what the ordinary way would do with it
            return errors.respond(request, error)


def _is_plain(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return headers.get(b"content-type") == b"application/json" and b"content-length" in headers


def _again(body: bytes) -> Receive:
    """The body was read already; whoever reads it next gets it from here."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
