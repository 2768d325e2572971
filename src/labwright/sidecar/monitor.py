"""The watching half of a sidecar: heartbeat, output growth, size cap, metrics, alert rules, foreign use of our cards.

It may die at any time: the supervisor starts another. If the supervisor dies, it stays until the job has gone,
so that `stop` and the time limit still work.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any

from labwright.files import passing_refusals, read_json, write_json
from labwright.gpu.probe import Detection
from labwright.paths import RunPaths
from labwright.processes import (
    ProcessIdentity,
    children_of,
    descendants_of,
    end_tree,
    identity,
    processes_of_run,
    work_of,
)
from labwright.sidecar.cards import CardWatch
from labwright.sidecar.gpuwrap import foreign_processes
from labwright.sidecar.record import RunJournal
from labwright.sidecar.relay import OrphanedOutput, is_relay
from labwright.sidecar.rules.book import RunRules
from labwright.sidecar.sources.run_metrics import RunMetrics, has_something_to_take
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
        record: RunJournal,
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


_SILENCE_SECONDS = 5.0  # after the job's end; a monitor that still reads its last words shows a heartbeat or works
_LAST_LOOK_SECONDS = 300.0
_CUT_SHORT = "Its last numbers were not all read: whoever read them came to a halt. They are in its output and files."
_LAST_LOOKS = 3
_PAUSE_SECONDS = 0.5  # before a dead one is replaced, so that one that cannot live does not burn a core


class MonitorProcess:
    """`let_go` closes, in the monitor's own process, what belongs to the job alone."""

    def __init__(self, paths: RunPaths, spec: dict[str, Any], record: RunJournal, let_go: Callable[[], None]) -> None:
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


_FALLOC_PUNCH_KEEP_SIZE = 0x03
_BLOCK = 4096
_SPARED_BYTES = 64 << 20


class OutputCap:
    def __init__(self, paths: RunPaths, cap_bytes: int) -> None:
        self._paths = paths
        self._cap = cap_bytes
        self._supported = cap_bytes > 0
        self._end = self._known_end()

    def apply(self, size: int, read_to: int, pass_over: Callable[[int], None]) -> None:
        """Once the kept part exceeds the cap, drop all but a quarter at the head and a quarter at the tail.

        What nobody has read for metrics yet is spared for a while; then the reader is told to pass it over.
        """
        head = self._cap // 4 // _BLOCK * _BLOCK
        kept = size - max(0, self._end - head)
        if not self._supported or kept <= self._cap:
            return
        end = (size - self._cap // 4) // _BLOCK * _BLOCK
        if end > read_to and kept > self._cap + max(self._cap, _SPARED_BYTES):
            pass_over(end)
        else:
            end = min(end, read_to // _BLOCK * _BLOCK)
        if end > max(head, self._end) and self._punch(head, end):
            self._end = end
            write_json(self._paths.output_gap, {"start": head, "end": end})

    def _known_end(self) -> int:
        try:
            return int(read_json(self._paths.output_gap)["end"])
        except FileNotFoundError:
            return 0

    def _punch(self, start: int, end: int) -> bool:
        libc = ctypes.CDLL(None, use_errno=True)
        fallocate = libc.fallocate64 if hasattr(libc, "fallocate64") else libc.fallocate
        fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        fd = os.open(self._paths.output, os.O_RDWR)
        try:
            if fallocate(fd, _FALLOC_PUNCH_KEEP_SIZE, start, end - start) == 0:
                return True
        finally:
            os.close(fd)
        if ctypes.get_errno() not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError(ctypes.get_errno(), "the output could not be capped", self._paths.output)
        self._supported = False  # this file system has no holes; the log stays whole
        return False
