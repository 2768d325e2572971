"""Fork test processes from a parent that has already imported everything.

Imports are nine tenths of a start, and the tests start hundreds of servers and commands. A forked process is still a
separate process: it has its own folder, environment, port, signals and end. Tests of the start itself use
`start(cold=True)` or call the command.
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
# Interpreters and libraries read these only at their start, so a fork would ignore them.
READ_AT_START = ("PYTHON", "LD_PRELOAD", "LC_", "LANG", "TZ", "MALLOC_")


def can_be_warm(environment: Mapping[str, str]) -> bool:
    changed = {name for name, value in environment.items() if os.environ.get(name) != value}
    missing = set(os.environ) - set(environment)
    return not any(name.startswith(READ_AT_START) for name in changed | missing)


class WarmProcess:
    """The part of `subprocess.Popen` that tests use, for a process whose parent is another process."""

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
    """Fork a server. Its standard error can be read from `stderr`."""
    read, write = os.pipe()
    server = WarmProcess("server", arguments, environment, Path.cwd(), out=1, err=write)
    os.close(write)
    server.stderr = os.fdopen(read, "rb")
    return server


def warm_command(
    arguments: Sequence[str], environment: Mapping[str, str], folder: str | Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run `labwright` with these arguments until it ends. Its input is empty."""
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
    """Return this test process's parent of that kind. The parent ends when the test process does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.support.warm_parent", kind, str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
