"""A warm process that forks a supervisor per line on its standard input: a launch costs a fork, not a start.

A line is JSON: the run folder, and variables that must not be in a file. The process belongs to one server and
ends with it; the supervisors it made live on by themselves. One whose command was over in a moment and left nothing
behind takes the next line, since the fork costs more than such a command.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys
import time
import traceback

from labwright.processes import boot_id
from labwright.sidecar.supervisor import Supervisor

_FREE_AT_MOST = 16
_FREE_SECONDS = 2.0
_LONGEST_LINE = 4096  # what a pipe takes in one piece


def serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, whose end closes our input
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps ended supervisors
    boot_id()  # read once, for all the forks
    gc.freeze()
    Supervisors().hand_out(sys.stdin.fileno())


class Supervisors:
    """Who of them is free is told through one pipe; each gets its next line, or its leave, through one of its own."""

    def __init__(self) -> None:
        self._told, self._tell = os.pipe2(os.O_CLOEXEC)
        self._pipes: set[int] = set()  # our ends, by which we name them
        self._free: dict[int, float] = {}  # since when

    def hand_out(self, lines: int) -> None:
        rest = b""
        while True:
            ready, _, _ = select.select([lines, self._told], [], [], _FREE_SECONDS if self._free else None)
            if self._told in ready:
                self._note_free(os.read(self._told, 4096).split())
            if lines in ready:
                block = os.read(lines, 65536)
                if not block:
                    return
                *whole, rest = (rest + block).split(b"\n")
                for line in whole:
                    self._hand(line + b"\n")
            self._dismiss_idle()

    def _note_free(self, names: list[bytes]) -> None:
        self._free.update((int(name), time.monotonic()) for name in names)

    def _hand(self, line: bytes) -> None:
        while self._free and len(line) <= _LONGEST_LINE:
            pipe, _ = self._free.popitem()
            try:
                os.write(pipe, line)
                return
            except BrokenPipeError:  # killed since
                self._dismiss(pipe)
        self._fork(line)

    def _dismiss_idle(self) -> None:
        now = time.monotonic()
        for place, (pipe, since) in enumerate(reversed(list(self._free.items()))):
            if place >= _FREE_AT_MOST or now - since >= _FREE_SECONDS:
                del self._free[pipe]
                self._dismiss(pipe)

    def _dismiss(self, pipe: int) -> None:
        self._pipes.discard(pipe)
        os.close(pipe)

    def _fork(self, line: bytes) -> None:
        next_lines, pipe = os.pipe2(os.O_CLOEXEC)
        self._pipes.add(pipe)
        if os.fork() == 0:
            for fd in (*self._pipes, self._told):
                os.close(fd)
            _become_supervisor(line, next_lines, self._tell, pipe)
        os.close(next_lines)


def _become_supervisor(line: bytes, next_lines: int, tell: int, name: int) -> None:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        while line and Supervisor(**json.loads(line)).supervise():
            line = _next_line(next_lines, tell, name)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here; its last words must reach the log
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _next_line(next_lines: int, tell: int, name: int) -> bytes:
    """Nothing once nobody wants us any more: the other end is closed, by its owner or by its owner's end."""
    with contextlib.suppress(BrokenPipeError):
        os.write(tell, f"{name}\n".encode())
        return os.read(next_lines, _LONGEST_LINE)
    return b""
