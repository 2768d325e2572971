"""Serve over standard input and output, or over HTTP on this machine only, with a token."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from labwright.client.address import read_token
from labwright.domain.actor import Scope as TokenScope
from labwright.domain.errors import Conflict, LabwrightError
from labwright.mcp.server import make_server
from labwright.paths import ProjectPaths
from labwright.tokens import verify

_HOST = "127.0.0.1"
_PATH = "/mcp"
_ALLOWED = frozenset({TokenScope.PERSON, TokenScope.AGENT})


def serve_stdio(project: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # otherwise Ctrl-C waits for a thread that waits for a line
    anyio.run(make_server(project).run_stdio_async)


def serve_http(project: Path, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until the process is told to end."""
    listener = _listen(port)
    port = listener.getsockname()[1]
    hosts = [f"{name}:{port}" for name in (_HOST, "localhost")]
    app = make_server(project).streamable_http_app(
        streamable_http_path=_PATH,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=hosts,
            allowed_origins=[f"http://{host}" for host in hosts],
        ),
    )
    config = uvicorn.Config(
        TokenCheck(app, ProjectPaths(project)),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=2,  # open streams would delay the end forever
        server_header=False,
        proxy_headers=False,
        ws="none",
    )
    on_ready(f"http://{_HOST}:{port}{_PATH}")
    uvicorn.Server(config).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
    except OSError as error:
        listener.close()
        raise Conflict(f"Port {port} is taken: {error.strerror}.", hint="Choose another with --port.") from error
    return listener


class TokenCheck:
    """Require a person's or an agent's token of this project. The tools act as an agent with either."""

    def __init__(self, app: ASGIApp, paths: ProjectPaths) -> None:
        self._app = app
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_allowed(scope):
            await _refuse(send)
        else:
            await self._app(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        """Read the secret for every request, so that a new one is valid immediately."""
        try:
            actor = verify(read_token(self._paths), _token_in(scope))
        except LabwrightError:  # without a secret no token is valid
            return False
        return actor is not None and actor.scope in _ALLOWED


def _token_in(scope: Scope) -> str:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    kind, _, value = headers.get("authorization", "").partition(" ")
    return headers.get("x-auth-token") or (value.strip() if kind.lower() == "bearer" else "")


async def _refuse(send: Send) -> None:
    hint = "Send one as Authorization: Bearer; labwright token --scope agent prints one."
    error = {"code": "unauthorized", "message": "A person's or an agent's token is required.", "hint": hint}
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error": error}).encode()})
