"""What a sidecar writes into the run folder, and how it wakes the server. Files first; the wake-up is only a help."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from typing import Any

from labwright.files import all_lines, create_exclusive, read_json
from labwright.paths import RunPaths
from labwright.processes import identity

_EXIT_RESERVE = 4096


class RunRecord:
    """One run's claim, events and exit, with the promise that a full disk delays them and never loses them."""

    def __init__(self, paths: RunPaths, run_id: str, wake: str) -> None:
        self.paths = paths
        self.run_id = run_id
        self._wake = wake
        self._unwritten = b""

    def claim(self, attempt: int) -> bool:
        """True for exactly one process per attempt, however many were started."""
        content = json.dumps({**identity(os.getpid()).to_dict(), "attempt": attempt, "time": time.time()})
        return create_exclusive(self.paths.claim(attempt), content.encode())

    def event(self, kind: str, *, wake: bool = True, **facts: Any) -> None:
        line = json.dumps({"event": kind, "time": time.time(), **facts}, ensure_ascii=False)
        self._unwritten += line.encode(errors="replace") + b"\n"
        self.flush()
        if wake:
            self.wake_server("events")

    def flush(self) -> bool:
        """Append what is still owed. Supervisor and monitor share the file: one write each, so lines stay whole."""
        if not self._unwritten:
            return True
        try:
            fd = os.open(self.paths.events, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                written = os.write(fd, self._unwritten)
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            written = 0
        self._unwritten = self._unwritten[written:]
        return not self._unwritten

    def reserve_exit(self) -> None:
        """Take the disk space for `exit.json` now, so that a disk filled by the job cannot hide how it ended."""
        try:
            fd = os.open(self._exit_aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.write(fd, b" " * _EXIT_RESERVE)
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    def exit(self, facts: dict[str, Any]) -> None:
        """Written last and fsynced: from here on the run has ended, whatever is killed."""
        content = json.dumps(facts, ensure_ascii=False).encode(errors="replace")
        while not (self._try_exit(content) and self.flush()):
            time.sleep(0.5)  # the disk is full; the truth waits for room
        os.replace(self._exit_aside, self.paths.exit)
        self.wake_server("events")

    def _try_exit(self, content: bytes) -> bool:
        padded = content.ljust(_EXIT_RESERVE) + b"\n"
        try:
            fd = os.open(self._exit_aside, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                complete = os.write(fd, padded) >= len(content)
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            return False
        return complete

    @property
    def _exit_aside(self) -> str:
        return f"{self.paths.exit}.new"

    def events(self) -> list[dict[str, Any]]:
        """What was written so far; a line torn by a full disk and a kill is no event."""
        found = []
        for line in all_lines(self.paths.events)[0]:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def wake_server(self, topic: str) -> None:
        """One line into the server's FIFO; with no server, or a full pipe, it looks by itself soon enough."""
        with contextlib.suppress(OSError):
            fd = os.open(self._wake, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(fd, f"{self.run_id} {topic}\n".encode())
            finally:
                os.close(fd)


def load_spec(paths: RunPaths) -> dict[str, Any]:
    spec: dict[str, Any] = read_json(paths.spec)
    return spec
