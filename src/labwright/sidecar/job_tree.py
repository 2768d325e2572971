"""The processes of a job: who of them is left, how the job itself ended, and what those that ended have used."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable

from labwright.processes import children_of, descendants_of, end_tree, processes_of_run
from labwright.sidecar.monitor_keeper import MonitorKeeper
from labwright.sidecar.relay import Relay

_LEAVING_SECONDS = 0.5  # a sandbox is gone just after the command that was in it
_LEFTOVER_GRACE_SECONDS = 5.0
_MOMENT_SECONDS = 0.02


class JobTree:
    """Monitor and relay are the supervisor's children too, and none of the job's."""

    def __init__(self, run_id: str, monitor: MonitorKeeper) -> None:
        self._run_id = run_id
        self._monitor = monitor
        self._relay: Relay | None = None
        self._job: int | None = None
        self.status: int | None = None  # how the job itself ended
        self.cpu_seconds = 0.0
        self.max_memory_mb = 0.0

    def begin(self, job: int, relay: Relay | None) -> None:
        self._job, self._relay, self.status = job, relay, None

    def members(self) -> set[int]:
        """All our descendants, and whoever carries the run's id."""
        tree = descendants_of(os.getpid()) | processes_of_run(self._run_id)
        return tree - {os.getpid(), *self._helpers}

    @property
    def _helpers(self) -> set[int]:
        return {pid for pid in (self._monitor.pid, self._relay and self._relay.pid) if pid}

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self._monitor.saw_end(pid, status) or (self._relay and self._relay.saw_end(pid)):
                    continue
                self._add_usage(usage)
                if pid == self._job:
                    self.status = status

    def _add_usage(self, usage: resource.struct_rusage) -> None:
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        self.max_memory_mb = max(self.max_memory_mb, usage.ru_maxrss / 1024)

    def end_leftovers(self, rest: Callable[[float], None]) -> int:
        """What the command left running ends with it; otherwise it would go on untracked. Answers how many those were.

        `rest` sleeps so long and reaps whatever ended.
        """
        if self._all_leave_by_themselves(rest):
            return 0
        return end_tree(self.members, _LEFTOVER_GRACE_SECONDS, self.reap)

    def _all_leave_by_themselves(self, rest: Callable[[float], None]) -> bool:
        deadline = time.monotonic() + _LEAVING_SECONDS
        while set(children_of(os.getpid())) - self._helpers:
            if time.monotonic() >= deadline:
                return False
            rest(_MOMENT_SECONDS)
        return True
