"""Servers that begin with everything imported: each is forked from a process that did so once.

Nine tenths of a start are imports, and the tests start hundreds of servers. What is forked is a process of its own all
the same: its project, its port, its signals, its death. Tests of the start itself say `start(cold=True)`, or call
`labwright up`.
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
from collections.abc import Mapping, Sequence
from functools import cache
from typing import IO

# What an interpreter or its libraries read when they start, a fork would not read again.
READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_")


def can_be_warm(environment: Mapping[str, str]) -> bool:
    changed = {name for name, value in environment.items() if os.environ.get(name) != value}
    missing = set(os.environ) - set(environment)
    return not any(name.startswith(READ_AT_START) for name in changed | missing)


class WarmServer:
    """The part of `subprocess.Popen` that tests use, for a process that is the child of another."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.returncode: int | None = None
        theirs, ours = os.pipe(), os.pipe()
        self.stderr: IO[bytes] = os.fdopen(theirs[0], "rb")
        self._ending = os.fdopen(ours[0], "rb", buffering=0)
        with open(os.devnull, "rb") as nothing:
            streams = [nothing.fileno(), 1, theirs[1], ours[1]]
            self.pid = _ask({"arguments": list(arguments), "environment": dict(environment)}, streams)
        os.close(theirs[1])
        os.close(ours[1])

    def poll(self) -> int | None:
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended_within(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a warm server", timeout or 0)
        return code

    def _ended_within(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._ending], [], [], seconds)[0]:
            self.returncode = int(self._ending.read())
            self._ending.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _ask(request: dict[str, object], fds: list[int]) -> int:
    parent = _parent()
    socket.send_fds(parent, [json.dumps(request).encode()], fds)
    return int(parent.recv(32))


@cache
def _parent() -> socket.socket:
    """One for each process of the tests; it ends when nobody can ask it any more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.support.warm_parent", str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
