"""A warm process that forks a supervisor for each line on its standard input: a launch costs a fork, not a start.

A line is JSON: the run folder, and variables that must not be written to a file. The process belongs to one server and
ends with it; its supervisors live on. A supervisor whose command ended at once and left nothing behind takes the next
line, because a fork costs more than such a command.
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
_LONGEST_LINE = 4096  # a pipe takes this much in one piece


def serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, and its end closes our input
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps ended supervisors
    boot_id()  # read once, for all forks
    gc.freeze()
    Supervisors().serve_lines(sys.stdin.fileno())


class Supervisors:
    """Free supervisors report through one shared pipe. Each gets its next line, or its end, through its own pipe."""

    def __init__(self) -> None:
        self._reports, self._report_end = os.pipe2(os.O_CLOEXEC)
        self._pipes: set[int] = set()  # our ends; each also names its supervisor
        self._free: dict[int, float] = {}  # pipe: since when

    def serve_lines(self, lines: int) -> None:
        rest = b""
        while True:
            ready, _, _ = select.select([lines, self._reports], [], [], _FREE_SECONDS if self._free else None)
            if self._reports in ready:
                names = os.read(self._reports, 4096).split()
                self._free.update((int(name), time.monotonic()) for name in names)
            if lines in ready:
                block = os.read(lines, 65536)
                if not block:
                    return
                *whole, rest = (rest + block).split(b"\n")
                for line in whole:
                    self._assign(line + b"\n")
            self._dismiss_idle()

    def _assign(self, line: bytes) -> None:
        while self._free and len(line) <= _LONGEST_LINE:
            pipe, _ = self._free.popitem()
            try:
                os.write(pipe, line)
                return
            except BrokenPipeError:  # the supervisor was killed
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
            for fd in (*self._pipes, self._reports):
                os.close(fd)
            _become_supervisor(line, next_lines, self._report_end, pipe)
        os.close(next_lines)


def _become_supervisor(line: bytes, next_lines: int, report_end: int, name: int) -> None:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        while line and Supervisor(**json.loads(line)).supervise():
            line = _next_line(next_lines, report_end, name)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here; its traceback must reach the log
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _next_line(next_lines: int, report_end: int, name: int) -> bytes:
    """Report as free and wait for a line. Return nothing once the other end is closed."""
    with contextlib.suppress(BrokenPipeError):
        os.write(report_end, f"{name}\n".encode())
        return os.read(next_lines, _LONGEST_LINE)
    return b""
