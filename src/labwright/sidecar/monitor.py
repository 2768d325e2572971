"""The watching half of a sidecar: heartbeat, output growth, size cap, foreign use of our cards.

It may die at any time: the supervisor starts another. If the supervisor dies, it stays until the job has gone,
so that `stop` and the time limit still work.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

from labwright.gpu.probe import run_detector
from labwright.paths import RunPaths
from labwright.processes import end_tree, processes_of_run
from labwright.sidecar.gpuwrap import foreign_processes
from labwright.sidecar.output_cap import OutputCap
from labwright.sidecar.record import RunRecord

_TICK_SECONDS = 0.25
_HEARTBEAT_SECONDS = 2.0
_FOREIGN_LOOK_SECONDS = 10.0


class Monitor:
    def __init__(self, paths: RunPaths, spec: dict[str, Any], record: RunRecord, started: float) -> None:
        self.paths = paths
        self.run: dict[str, Any] = spec["run"]
        self.options: dict[str, Any] = spec["sidecar"]
        self.record = record
        self._started = started
        self._supervisor = os.getppid()
        self._cap = OutputCap(paths, self.options["log_cap_bytes"])
        self._output_size = -1
        self._beat_at = 0.0
        self._look_at = time.monotonic() + _FOREIGN_LOOK_SECONDS

    def watch(self) -> None:
        """Until the supervisor says that the job has ended (TERM), or until an orphaned job is gone."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        while os.getppid() == self._supervisor:
            self._tick()
            if signal.sigtimedwait({signal.SIGTERM}, _TICK_SECONDS):
                self._tick()  # the last words of the job
                return
        self.watch_orphan()

    def watch_orphan(self) -> None:
        """The supervisor is dead; nobody can learn the exit code any more, but the job is still ours to look after."""
        stopping = False
        while processes_of_run(self.run["id"]):
            self._tick()
            if not stopping and (os.path.exists(self.paths.stop) or self._over_time_limit()):
                stopping = True
                end_tree(lambda: processes_of_run(self.run["id"]), self.options["grace_seconds"])
            time.sleep(_TICK_SECONDS)
        self.record.wake_server("events")

    def _over_time_limit(self) -> bool:
        limit = self.run["time_limit_seconds"]
        return bool(limit and time.time() - self._started >= limit)

    def _tick(self) -> None:
        self._beat()
        self._notice_output()
        self._look_for_foreign_use()

    def _beat(self) -> None:
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + _HEARTBEAT_SECONDS
            os.close(os.open(self.paths.heartbeat, os.O_WRONLY | os.O_CREAT, 0o600))
            os.utime(self.paths.heartbeat)

    def _notice_output(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            size = os.path.getsize(self.paths.output)
            if size != self._output_size:
                self._output_size = size
                self._cap.apply(size)
                self.record.wake_server("output")

    def _look_for_foreign_use(self) -> None:
        gpu = self.options["gpu"]
        if not gpu or not gpu.get("check_foreign") or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _FOREIGN_LOOK_SECONDS
        detection = run_detector(timeout=10.0, samples=1, pynvml_dir=gpu.get("pynvml_dir"))
        foreign = foreign_processes(detection, self._own_cards(), processes_of_run(self.run["id"]))
        if foreign:
            self.record.event("foreign_use", processes=[process.pid for process in foreign])
            self._look_at = float("inf")  # said once; it stays in the record for the judge

    def _own_cards(self) -> tuple[str, ...]:
        started = [event for event in self.record.events() if event["event"] == "started"]
        return tuple(started[-1]["gpu_uuids"]) if started else ()
