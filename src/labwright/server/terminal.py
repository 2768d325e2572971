"""A program in a pseudo-terminal, seen and typed into over a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import termios
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

_PIECE = 32 * 1024
_LARGEST = 1000  # columns or rows


async def show(socket: WebSocket, command: list[str]) -> None:
    """Until the program ends or the other side goes. What it starts ends with it."""
    master, slave = pty.openpty()
    try:
        _resize(master, *_size(socket.query_params))  # from the beginning: a program may miss a change while it starts
        # setsid makes the terminal the program's own, so that Ctrl-C in it is a signal.
        process = await asyncio.create_subprocess_exec(
            "setsid", "--ctty", "--wait", *command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
    finally:
        os.close(slave)
    try:
        await _exchange(socket, master)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGHUP)
        os.close(master)  # hangs up on what is in a session of its own
        await process.wait()


async def _exchange(socket: WebSocket, master: int) -> None:
    """Both ways at once; the first that ends, ends the other."""
    ways = {asyncio.create_task(_send_output(socket, master)), asyncio.create_task(_take_input(socket, master))}
    done, left = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    for task in done:
        task.result()


async def _send_output(socket: WebSocket, master: int) -> None:
    while piece := await _read(master):
        await socket.send_bytes(piece)


async def _read(master: int) -> bytes:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(master, ready.set)
    try:
        await ready.wait()
        return os.read(master, _PIECE)
    except OSError:  # the program has closed its side
        return b""
    finally:
        loop.remove_reader(master)


async def _take_input(socket: WebSocket, master: int) -> None:
    """Bytes are keys, text is the window's size."""
    with contextlib.suppress(WebSocketDisconnect):
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if keys := message.get("bytes"):
                os.write(master, keys)
            elif text := message.get("text"):
                _resize(master, *_size(_parsed(text)))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _size(wanted: Any) -> tuple[int, int]:
    """Nonsense is a small window, not a fault."""
    try:
        return _bounded(wanted["cols"]), _bounded(wanted["rows"])
    except (ValueError, KeyError, TypeError):
        return 80, 24


def _bounded(number: object) -> int:
    return max(2, min(_LARGEST, int(str(number))))


def _resize(master: int, columns: int, rows: int) -> None:
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
