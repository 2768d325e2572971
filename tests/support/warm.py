"""Processes that begin with everything imported: each is forked from one that did so once.

Nine tenths of a start are imports, and the tests start hundreds of servers and commands. What is forked is a process of
its own all the same: its folder, its environment, its port, its signals, its death. Tests of the start itself say
`start(cold=True)`, or call the command.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Literal

Kind = Literal["server", "command"]
# An interpreter and its libraries read these only when they start, so a fork would ignore them.
READ_AT_START = ("PYTHON", "LD_PRELOAD", "LC_", "LANG", "TZ", "MALLOC_")


def can_be_warm(environment: Mapping[str, str]) -> bool:
    changed = {name for name, value in environment.items() if os.environ.get(name) != value}
    missing = set(os.environ) - set(environment)
    return not any(name.startswith(READ_AT_START) for name in changed | missing)


class WarmProcess:
    """The part of `subprocess.Popen` that tests use, for a process that is the child of another."""

    def __init__(
        self,
        kind: Kind,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: str | Path,
        *,
        out: int,
        err: int,
    ) -> None:
        self.returncode: int | None = None
        self.stderr: IO[bytes] | None = None
        request: dict[str, object] = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder),
        }
        end, told = os.pipe()
        self._end = os.fdopen(end, "rb", buffering=0)
        with open(os.devnull, "rb") as nothing:
            self.pid = _ask(kind, request, [nothing.fileno(), out, err, told])
        os.close(told)

    def poll(self) -> int | None:
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended_within(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a warm process", timeout or 0)
        return code

    def _ended_within(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._end], [], [], seconds)[0]:
            self.returncode = int(self._end.read())
            self._end.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def warm_server(arguments: Sequence[str], environment: Mapping[str, str]) -> WarmProcess:
    """What it says to standard error can be read from its `stderr`."""
    read, write = os.pipe()
    server = WarmProcess("server", arguments, environment, Path.cwd(), out=1, err=write)
    os.close(write)
    server.stderr = os.fdopen(read, "rb")
    return server


def warm_command(
    arguments: Sequence[str], environment: Mapping[str, str], folder: str | Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """`labwright` with these arguments, to its end; its input is empty."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = WarmProcess("command", arguments, environment, folder, out=out.fileno(), err=err.fileno())
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
            process.wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, out.read(), err.read())


def _ask(kind: Kind, request: dict[str, object], fds: list[int]) -> int:
    parent = _parent(kind)
    socket.send_fds(parent, [json.dumps(request).encode()], fds)
    return int(parent.recv(32))


@cache
def _parent(kind: Kind) -> socket.socket:
    """One of each kind for each process of the tests; it ends when nobody can ask it any more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.support.warm_parent", kind, str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
