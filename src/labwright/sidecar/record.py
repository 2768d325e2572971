"""Write the files of a sidecar in the run folder, and wake the server. A wake-up only saves time: files count."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from typing import Any

from labwright.files import all_lines, create_exclusive, passing_refusals, read_json
from labwright.paths import RunPaths
from labwright.processes import identity

_EXIT_RESERVE = 4096
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class HeldFolder:
    """A run folder that its supervisor holds open, so that it stays reachable if the project is moved."""

    def __init__(self, run_dir: str) -> None:
        self.place = RunPaths(run_dir)  # where the folder is when the job starts
        self._fd = os.open(run_dir, _FOLDER)
        self.paths = RunPaths(f"/proc/self/fd/{self._fd}")  # valid in this process and its forks

    def reopen_if_replaced(self) -> None:
        """Open the new folder if the server has recreated a deleted one."""
        if os.fstat(self._fd).st_nlink == 0 and os.path.isdir(self.place.dir):
            new = os.open(self.place.dir, _FOLDER)
            os.dup2(new, self._fd, inheritable=False)
            os.close(new)

    def close(self) -> None:
        os.close(self._fd)


class RunJournal:
    """The claim, events and exit of one run. A disk that refuses a write delays them; nothing is lost."""

    def __init__(self, paths: RunPaths, run_id: str, wake: str) -> None:
        self.paths = paths
        self.run_id = run_id
        self._wake = wake
        self._unwritten = b""

    def claim(self, attempt: int, **facts: str) -> bool:
        """Return True in exactly one process per attempt, however many were started."""
        content = json.dumps({**identity(os.getpid()).to_dict(), **facts, "attempt": attempt, "time": time.time()})
        return create_exclusive(self.paths.claim(attempt), content.encode())

    def event(self, kind: str, *, wake: bool = True, **facts: Any) -> None:
        line = json.dumps({"event": kind, "time": time.time(), **facts}, ensure_ascii=False)
        self._unwritten += line.encode(errors="replace") + b"\n"
        self.flush()
        if wake:
            self.wake_server("events")

    def flush(self) -> bool:
        """Append unwritten events. Return whether all are written.

        Supervisor and monitor share the file, so each appends with a single write and lines stay whole.
        """
        if not self._unwritten:
            return True
        written = 0
        with passing_refusals():
            fd = os.open(self.paths.events, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                written = os.write(fd, self._unwritten)
            finally:
                os.close(fd)
        self._unwritten = self._unwritten[written:]
        return not self._unwritten

    def reserve_exit(self) -> None:
        """Reserve disk space for `exit.json`, so that a job that fills the disk cannot prevent it."""
        with passing_refusals():
            fd = os.open(self._exit_aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.write(fd, b" " * _EXIT_RESERVE)
            finally:
                os.close(fd)

    def exit(self, facts: dict[str, Any], write_owed: Callable[[], bool] = lambda: True) -> None:
        """Write and fsync `exit.json`. From then on the run has ended, whatever is killed.

        `write_owed` writes what must be on the disk before, and returns whether all of it is.
        """
        content = json.dumps(facts, ensure_ascii=False).encode(errors="replace")
        while not (self._write_exit(content) and self.flush() and write_owed() and self._publish_exit()):
            time.sleep(0.5)  # the disk is full or read-only
        self.wake_server("events")

    def _write_exit(self, content: bytes) -> bool:
        padded = content.ljust(_EXIT_RESERVE) + b"\n"
        with passing_refusals():
            fd = os.open(self._exit_aside, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                complete = os.write(fd, padded) >= len(content)
                os.fsync(fd)
                return complete
            finally:
                os.close(fd)
        return False

    def _publish_exit(self) -> bool:
        with passing_refusals():
            os.replace(self._exit_aside, self.paths.exit)
            return True
        return False

    @property
    def _exit_aside(self) -> str:
        return f"{self.paths.exit}.new"

    def events(self) -> list[dict[str, Any]]:
        """Return the events written so far, without lines that a full disk and a kill cut off."""
        events = []
        for line in all_lines(self.paths.events)[0]:
            with contextlib.suppress(ValueError):
                events.append(json.loads(line))
        return events

    @property
    def is_stop_requested(self) -> bool:
        return os.path.exists(self.paths.stop)

    def stop_reason(self) -> str:
        """Return the reason given with the stop request. Anybody may have written the file, so it is not trusted."""
        try:
            request = read_json(self.paths.stop)
        except (OSError, ValueError):
            return ""
        return str(request.get("reason", ""))[:500] if isinstance(request, dict) else ""

    def wake_server(self, topic: str) -> None:
        """Write one line into the server's FIFO. Without a server, or with a full pipe, the server polls later."""
        with contextlib.suppress(OSError):
            fd = os.open(self._wake, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(fd, f"{self.run_id} {topic}\n".encode())
            finally:
                os.close(fd)


def load_spec(paths: RunPaths) -> dict[str, Any]:
    spec: dict[str, Any] = read_json(paths.spec)
    return spec
