"""WS /runs/{run_id}/terminal: a run's terminal in the browser. Closing it does not end the run."""

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

from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect

from labwright.compute.lab import Lab
from labwright.compute.viewers import viewer_command
from labwright.domain.actor import Scope
from labwright.domain.errors import LabwrightError
from labwright.domain.run import LOCAL, RunStatus
from labwright.services.runs import verbs as runs

router = APIRouter(tags=["runs"])
PROTOCOL = "labwright.terminal"
_REFUSED, _NOT_RUNNING, _OVER = 4403, 4409, 1000


@router.websocket("/runs/{run_id}/terminal")
async def open_terminal(socket: WebSocket, run_id: str) -> None:
    """Open the terminal, for a person only. Bytes from the browser are keys; text is `{cols, rows}`."""
    await socket.accept(PROTOCOL if PROTOCOL in socket.scope["subprotocols"] else None)
    if socket.state.actor.scope is not Scope.PERSON:
        await socket.close(_REFUSED, "Only a person may type into a run.")
        return
    lab: Lab = socket.app.state.lab
    try:
        run = runs.find(lab, run_id)
    except LabwrightError as error:
        await socket.close(_NOT_RUNNING, error.message[:120])
        return
    if run.status is not RunStatus.RUNNING or run.pid is None or run.launcher != LOCAL:
        await socket.close(_NOT_RUNNING, f"The run is {run.status}. Only a local run that is running has a terminal.")
        return
    await _show(socket, viewer_command(run))
    if socket.client_state.name == "CONNECTED":
        await socket.close(_OVER, "The run has ended.")


_PIECE = 32 * 1024
_LARGEST = 1000  # columns or rows


async def _show(socket: WebSocket, command: list[str]) -> None:
    """Run a program in a pseudo-terminal until it ends or the client disconnects. Its child processes end with it."""
    master, slave = pty.openpty()
    try:
        _resize(master, *_size(socket.query_params))  # first: a program may miss a change while it starts
        # setsid makes this the controlling terminal, so that Ctrl-C sends a signal.
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
        os.close(master)  # also ends programs in their own session
        await process.wait()


async def _exchange(socket: WebSocket, master: int) -> None:
    """Copy output and input at the same time, until one of them ends."""
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
    """Write keys (bytes) to the terminal, and apply window sizes (text)."""
    with contextlib.suppress(WebSocketDisconnect):
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if keys := message.get("bytes"):
                os.write(master, keys)
            elif text := message.get("text"):
                _resize(master, *_size(text))


def _size(values: Any) -> tuple[int, int]:
    """Return columns and rows; an invalid size gives the default."""
    try:
        values = json.loads(values) if isinstance(values, str) else values
        return _bounded(values["cols"]), _bounded(values["rows"])
    except (ValueError, KeyError, TypeError):
        return 80, 24


def _bounded(number: object) -> int:
    return max(2, min(_LARGEST, int(str(number))))


def _resize(master: int, columns: int, rows: int) -> None:
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
