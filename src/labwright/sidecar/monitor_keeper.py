"""Keep a monitor beside the job: forked when due, again when it died, asked for its last look at the end."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any

from labwright.paths import RunPaths
from labwright.processes import work_of
from labwright.sidecar.monitor import Monitor
from labwright.sidecar.record import RunRecord
from labwright.sidecar.sources.run_metrics import has_something_to_take
from labwright.sidecar.sources.start import Start

_SILENCE_SECONDS = 5.0  # after the job's end; a monitor that still reads its last words shows a heartbeat or works
_LAST_LOOK_SECONDS = 300.0
_CUT_SHORT = "Its last numbers were not all read: whoever read them came to a halt. They are in its output and files."
_LAST_LOOKS = 3
_PAUSE_SECONDS = 0.5  # before a dead one is replaced, so that one that cannot live does not burn a core


class MonitorKeeper:
    """`let_go` closes, in the monitor's own process, what belongs to the job alone."""

    def __init__(self, paths: RunPaths, spec: dict[str, Any], record: RunRecord, let_go: Callable[[], None]) -> None:
        self._paths = paths
        self._spec = spec
        self._record = record
        self._let_go = let_go
        self._started = 0.0
        self._at_start = Start(0.0)
        self._due_at = 0.0
        self._failed = False
        self.pid: int | None = None
        self.was_needed = False

    def job_began(self, started: float, at_start: Start) -> None:
        """Most commands are over before one is due."""
        self._started, self._at_start = started, at_start
        self._due_at = time.monotonic() + self._spec["sidecar"]["monitor_after_seconds"]

    @property
    def due_in(self) -> float | None:
        """Seconds; nothing while there is one."""
        return None if self.pid is not None else self._due_at - time.monotonic()

    def start(self) -> None:
        """With TERM held back, so that none is lost between the fork and the monitor's readiness for it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_monitor(supervisor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        self.pid = pid
        self.was_needed = True

    def _become_monitor(self, supervisor: int) -> None:
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else signal.SIG_IGN)
            self._let_go()
            Monitor(self._paths, self._spec, self._record, self._started, self._at_start, supervisor).watch()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the process ends here; its last words must reach the log
            traceback.print_exc()
        finally:
            os._exit(1)

    def saw_end(self, pid: int, status: int) -> bool:
        """Whether a process that was reaped is the monitor; then another one is due soon."""
        if pid != self.pid:
            return False
        self.pid = None
        self._failed = status != 0
        self._due_at = time.monotonic() + _PAUSE_SECONDS
        return True

    def close(self, rest: Callable[[float], None]) -> None:
        """Ask for its last look at the output; if it is killed on the way, another one looks.

        `rest` sleeps so long and reaps whatever ended.
        """
        for _ in range(_LAST_LOOKS):
            if self.pid is None and has_something_to_take(self._paths, self._spec):
                self.start()  # the command was done before anybody watched
            if self.pid is None or not self._wait(self.pid, rest):
                return

    def _wait(self, pid: int, rest: Callable[[float], None]) -> bool:
        """Answers whether it was killed before it was done; a hung one we kill ourselves."""
        self._failed = False
        os.kill(pid, signal.SIGTERM)
        asked_at = worked_at = time.monotonic()
        work = work_of(pid)
        while self.pid is not None:
            if work != (work := work_of(pid)):
                worked_at = time.monotonic()
            if self._is_hung(asked_at, worked_at):
                self._record.event("warning", text=_CUT_SHORT)
                os.kill(pid, signal.SIGKILL)
                asked_at = worked_at = float("inf")
            rest(0.1)
        return self._failed and asked_at != float("inf")

    def _is_hung(self, asked_at: float, worked_at: float) -> bool:
        """On a busy machine one portion takes long; who gets on with it is not hung."""
        now = time.monotonic()
        if now - max(asked_at, worked_at) <= _SILENCE_SECONDS:
            return now - asked_at > _LAST_LOOK_SECONDS
        try:
            return time.time() - os.path.getmtime(self._paths.heartbeat) > _SILENCE_SECONDS
        except FileNotFoundError:
            return True
