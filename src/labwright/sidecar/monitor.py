"""The watching half of a sidecar: heartbeat, output growth, size cap, metrics, alert rules, foreign use of our cards.

It may die at any time: the supervisor starts another. If the supervisor dies, it stays until the job has gone,
so that `stop` and the time limit still work.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import Any

from labwright.files import passing_refusals
from labwright.gpu.probe import Detection
from labwright.paths import RunPaths
from labwright.processes import ProcessIdentity, children_of, descendants_of, end_tree, identity, processes_of_run
from labwright.sidecar.gpuwrap import foreign_processes
from labwright.sidecar.orphan import OrphanedOutput
from labwright.sidecar.output_cap import OutputCap
from labwright.sidecar.record import RunRecord
from labwright.sidecar.relay import is_relay
from labwright.sidecar.rules.run_rules import RunRules
from labwright.sidecar.sources.cards import CardWatch
from labwright.sidecar.sources.run_metrics import RunMetrics
from labwright.sidecar.sources.start import Start

_TICK_SECONDS = 0.25
_HEARTBEAT_SECONDS = 2.0
_FULL_DISK_SECONDS = 20.0
_START_SLACK_SECONDS = 0.5


class Monitor:
    def __init__(
        self,
        paths: RunPaths,
        spec: dict[str, Any],
        record: RunRecord,
        started: float,
        start: Start | None = None,
        supervisor: int | None = None,
        process: ProcessIdentity | None = None,
    ) -> None:
        """`start` and `supervisor` from who forked us; without them we were sent to an orphan. `process` where there
        never was a supervisor, since somebody else started it."""
        self.paths = paths
        self.run: dict[str, Any] = spec["run"]
        self.options: dict[str, Any] = spec["sidecar"]
        self.record = record
        self._began = time.monotonic() - max(0.0, time.time() - started)  # which no change of the clock touches
        self._process = process
        self._supervisor = supervisor  # as told: one that was killed meanwhile is no longer our parent
        self._cap = OutputCap(paths, self.options["log_cap_bytes"])
        self._output_size = -1
        self._beat_at = 0.0
        self._cards = CardWatch(self.options["gpu"])
        self._foreign_said = False
        self._rules = RunRules(paths, spec, record, started)
        begin = start or Start(started - _START_SLACK_SECONDS)
        self._metrics = RunMetrics(paths, spec, record, begin, self._tree, self._rules.see_line)

    def watch(self) -> None:
        """Until the supervisor says that the job has ended (TERM), or until an orphaned job is gone."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        while os.getppid() == self._supervisor:
            self._tick()
            if signal.sigtimedwait({signal.SIGTERM}, _TICK_SECONDS):
                self._last_look()
                return
        self.watch_orphan()

    def watch_orphan(self) -> None:
        """The supervisor is dead; nobody can learn the exit code any more, but the job is still ours to look after."""
        stopping = False
        output = OrphanedOutput(self.paths, self.record)
        while processes_of_run(self.run["id"]):
            output.tend()
            self._tick()
            if not stopping and (why := self._reason_to_end()):
                stopping = True
                self.record.event("stopping", why=why)  # first: whoever finds the job gone is to know
                end_tree(lambda: processes_of_run(self.run["id"]), self.options["grace_seconds"])
            time.sleep(_TICK_SECONDS)
        output.settle()
        self._last_look()
        self.record.wake_server("events")

    def watch_process(self) -> None:
        """Until a process that is not ours has ended; whoever wants to stop it sends it a signal."""
        assert self._process is not None
        self._beat()  # also where it has ended already: nobody else need be sent
        while self._process.is_alive:
            self._tick()
            time.sleep(_TICK_SECONDS)
        self._last_look()

    def _reason_to_end(self) -> str:
        limit = self.run["time_limit_seconds"]
        if self.record.is_stop_requested:
            return "stop"
        return "time_limit" if limit and time.monotonic() - self._began >= limit else ""

    def _tick(self) -> None:
        self._beat()
        self._metrics.look()
        self._rules.look()
        self._notice_output()
        self._look_at_cards()

    def _last_look(self) -> None:
        """The last words of the job, however many; a full disk gets some time to be less full."""
        patience = time.monotonic() + _FULL_DISK_SECONDS
        while self._metrics.look(last=True) or (self._metrics.is_behind and time.monotonic() < patience):
            self._beat()
            if self._metrics.is_behind:
                time.sleep(_TICK_SECONDS)
        while self._rules.look():
            self._beat()
        self._notice_output()

    def _beat(self) -> None:
        if not self._beat_at:
            self._say_who_watches()
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + _HEARTBEAT_SECONDS
            with passing_refusals():
                os.utime(self.paths.heartbeat)

    def _say_who_watches(self) -> None:
        """Another watcher is sent once this one is gone, or silent for long; on a full disk silence alone tells."""
        with passing_refusals():
            fd = os.open(self.paths.heartbeat, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.write(fd, json.dumps(identity(os.getpid()).to_dict()).encode())
            finally:
                os.close(fd)

    def _notice_output(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            size = os.path.getsize(self.paths.output)
            # also where it has not grown: what was spared for its numbers may have been read since
            self._cap.apply(size, self._metrics.output_read_to, self._metrics.pass_output_over)
            if size != self._output_size:
                self._output_size = size
                self.record.wake_server("output")

    def _tree(self) -> set[int]:
        """The job's processes: all the supervisor's but ourselves, whom we ask, and the relay."""
        if self._process is not None:
            return {self._process.pid, *descendants_of(self._process.pid)} if self._process.is_alive else set()
        if self._supervisor is None or os.getppid() != self._supervisor:
            return processes_of_run(self.run["id"])
        tops = {pid for pid in children_of(self._supervisor) if pid != os.getpid() and not is_relay(pid)}
        return tops.union(*(descendants_of(top) for top in tops))

    def _look_at_cards(self) -> None:
        if detection := self._cards.poll():
            cards = self._own_cards()
            self._metrics.add_cards([gpu for gpu in detection.gpus if gpu.uuid in cards])
            self._look_for_foreign_use(detection, cards)

    def _look_for_foreign_use(self, detection: Detection, cards: tuple[str, ...]) -> None:
        """Said when it begins and when it ends; the judge looks at the newest word."""
        if not self.options["gpu"].get("check_foreign"):
            return
        own = self._tree() | processes_of_run(self.run["id"])  # a new process title may have wiped out the run's id
        if not own:
            return  # the job has ended, and whoever is on its cards now may be their next holder
        foreign = foreign_processes(detection, cards, own)
        if bool(foreign) != self._foreign_said:
            self.record.event("foreign_use", processes=[process.pid for process in foreign])
            self._foreign_said = bool(foreign)

    def _own_cards(self) -> tuple[str, ...]:
        started = [event for event in self.record.events() if event["event"] == "started"]
        return tuple(started[-1]["gpu_uuids"]) if started else ()
