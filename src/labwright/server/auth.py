"""The checks in front of every route: Host, Origin, size and token. A path is closed unless it is listed as open."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from functools import lru_cache
from typing import Any

from fastapi import Depends, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labwright.domain import errors
from labwright.domain.actor import Actor
from labwright.domain.actor import Scope as TokenScope
from labwright.server.errors import answer
from labwright.tokens import has_expired, verify

OPEN_PATHS = frozenset({"/", "/health", "/docs", "/openapi.json"})
OPEN_FOLDERS = ("/assets/", "/dashboard/")  # static files without project data
MAX_BODY_BYTES = 8 << 20
_DRAIN_SECONDS = 1.0
SOCKET_PREFIX = "labwright.token."
# The default policy of responses: scripts and styles only from our files, nothing inline, no markup from text (trusted
# types), no other addresses, no frames. The page fetches a run's pictures with the token and shows them from memory
# (blob:, and data: for SVG, which then has no origin).
_POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_SECURITY_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}
_HOST = re.compile(r"^(?P<name>\[[0-9a-fA-F:.]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?$")


class Door:
    """Checks each request, and passes it on with its actor."""

    def __init__(self, app: ASGIApp, *, token: str, allowed_hosts: Iterable[str], bound_to: str) -> None:
        self._app = app
        self._token = token
        self._names = {name.strip().lower() for name in allowed_hosts if name.strip()} | {"localhost"}
        self._open_to_network = not _is_loopback(bound_to)
        self._is_ours = lru_cache(maxsize=64)(self._is_known_host)
        if self._open_to_network:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self._open_socket(scope, receive, send)
            return
        send = _with_security_headers(send)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            headers["host"] = ""  # ambiguous
        try:
            self._check(scope, headers)
        except errors.LabwrightError as error:
            if headers.get("connection", "").lower() == "close":
                await _drain(receive)
            await answer(error)(scope, receive, send)
            return
        await self._app(scope, _limited(receive), send)

    async def _open_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Apply the same checks to a web socket. Browsers cannot send its headers, so the token is a subprotocol."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        offered = [name.removeprefix(SOCKET_PREFIX) for name in scope["subprotocols"] if name.startswith(SOCKET_PREFIX)]
        try:
            self._check(scope, {**headers, **({"x-auth-token": offered[0]} if offered else {})})
        except errors.LabwrightError:
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            raise errors.Forbidden(
                f"The host {host!r} is not allowed.", hint="Use localhost, or add it to LABWRIGHT_ALLOWED_HOSTS."
            )
        _check_origin(headers)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            raise _too_large()
        path = scope["path"]
        if path in OPEN_PATHS or path.startswith(OPEN_FOLDERS):
            return
        token = _token_in(headers)
        actor = verify(self._token, token) if token and self._token else None
        if actor is None:
            raise errors.Unauthorized
        scope.setdefault("state", {})["actor"] = actor

    def _is_known_host(self, host: str) -> bool:
        """Whether the host is a known name or an address. This refuses foreign names that resolve to this machine."""
        match = _HOST.match(host)
        name = match["name"].lower() if match else ""
        if name in self._names or name.endswith(".localhost") or _is_loopback(name):
            return True
        return self._open_to_network and _is_address(name)


def _check_origin(headers: dict[str, str]) -> None:
    """Refuse requests from pages of other sites, even with a valid token."""
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{headers.get('host')}", f"https://{headers.get('host')}"):
        raise errors.Forbidden(
            f"Requests from {origin!r} are not allowed.", hint="Open the dashboard at the server's own address."
        )


def _token_in(headers: dict[str, str]) -> str:
    if "x-auth-token" in headers:
        return headers["x-auth-token"]
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _with_security_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = message["headers"]
            own = {name.lower() for name, _ in given}
            message["headers"] = [*given, *(item for item in _SECURITY_HEADERS.items() if item[0] not in own)]
        await send(message)

    return sending


def _limited(receive: Receive) -> Receive:
    """Count the body while it arrives: a chunked body has no length header."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MAX_BODY_BYTES:
            raise _too_large()
        return message

    return counted


def _too_large() -> errors.TooLarge:
    return errors.TooLarge(
        f"A request may have at most {MAX_BODY_BYTES >> 20} MB.", hint="Send several smaller requests."
    )


async def _drain(receive: Receive) -> None:
    """Read the rest of the body, so that a client that is still sending gets the response and not a reset."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while (await receive()).get("more_body", False):  # also false after a disconnect
                pass


def actor_of(request: Request) -> Actor:
    actor: Actor = request.state.actor
    return actor


def token_of(request: Request) -> str:
    """Return the caller's token."""
    return _token_in(
        {name: request.headers[name] for name in ("x-auth-token", "authorization") if name in request.headers}
    )


async def while_valid(request: Request, body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Yield the stream until its token expires. Keep-alive messages make this check regular."""
    token = token_of(request)
    async with contextlib.aclosing(body):
        async for block in body:
            if has_expired(token):
                return
            yield block


def allow(*scopes: TokenScope) -> Any:
    """Return a dependency that checks the scope of the token. A person may call every route."""
    allowed = frozenset({TokenScope.PERSON, *scopes})

    async def check(request: Request) -> None:  # async, since FastAPI runs plain functions in a thread
        actor = actor_of(request)
        if actor.scope not in allowed:
            raise errors.Forbidden(
                f"A token of scope {actor.scope} may not do this.",
                hint=f"Required scope: {', '.join(sorted(allowed))}.",
            )
        own = request.path_params.get("run_id")
        if actor.scope is TokenScope.RUN and own != actor.name:
            raise errors.Forbidden("A run's token is valid only for that run.", hint="Use the run's full id.")
        if actor.scope is TokenScope.ANSWER and request.path_params.get("approval_id") != actor.name:
            raise errors.Forbidden("This token is valid for another approval.")

    check.allowed_scopes = allowed  # type: ignore[attr-defined]
    return Depends(check)


READERS: Callable[[], Any] = lambda: allow(TokenScope.VIEWER, TokenScope.PLANNER, TokenScope.AGENT)  # noqa: E731
PLANNERS: Callable[[], Any] = lambda: allow(TokenScope.PLANNER, TokenScope.AGENT)  # noqa: E731
WRITERS: Callable[[], Any] = lambda: allow(TokenScope.AGENT)  # noqa: E731
PERSON: Callable[[], Any] = allow
