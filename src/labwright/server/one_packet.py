"""An answer's head and body leave together: sent one by one, each would wake the reader."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_HELD = 1 << 16  # more is not worth copying


class OnePacketProtocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Joining(transport, self.loop))  # type: ignore[arg-type]


class _Joining:
    """A transport that sends what was written within one turn of the loop at its end."""

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
        if held and not self._transport.is_closing():  # else the reader has gone away meanwhile
            self._transport.writelines(held)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
