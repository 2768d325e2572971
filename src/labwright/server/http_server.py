"""How uvicorn serves the application: signals, web sockets, and responses in one packet."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_HELD = 1 << 16  # bytes; copying more costs more than a second packet


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Like uvicorn, but do not raise the signal again at the end: that would skip the cleanup."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield


def run(app: ASGIApp, listening: socket.socket) -> None:
    """Serve until a signal ends the server."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,  # open streams never end by themselves
        http=OnePacketProtocol,
        loop="uvloop",
        ws=_web_socket,  # type: ignore[arg-type]
        lifespan="on",
        server_header=False,
        proxy_headers=False,
    )
    _Server(config).run(sockets=[listening])


def _web_socket(**connection: Any) -> asyncio.Protocol:
    """Only a run's terminal uses a web socket, so its library is imported when the first one opens."""
    from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

    return WSProtocol(**connection)


class OnePacketProtocol(HttpToolsProtocol):
    """Sends the head and the body of a response together, so that the client wakes up once."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Joining(transport, self.loop))  # type: ignore[arg-type]


class _Joining:
    """A transport that collects everything written in one turn of the event loop and sends it at the end."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        if len(data) > _MAX_HELD:
            self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():  # else the client has disconnected
            self._transport.writelines(held)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
