"""The watching half of a sidecar: heartbeat, output growth and its cap, metrics, alert rules, foreign use of cards.

A monitor may die at any time: the supervisor starts another one. If the supervisor dies, the monitor stays until the
job has ended, so that `stop` and the time limit still work.
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
_SILENCE_SECONDS = 5.0  # after the job's end; a monitor that still reads shows a heartbeat or uses the processor
_LAST_LOOK_SECONDS = 300.0
_CUT_SHORT = "Its last numbers were not all read: the process that read them hung. They are in its output and files."
_LAST_LOOKS = 3
_PAUSE_SECONDS = 0.5  # before a dead monitor is replaced, so that a failing one does not use up a core
_FALLOC_PUNCH_KEEP_SIZE = 0x03
_BLOCK = 4096
_SPARED_BYTES = 64 << 20


class Monitor:
    """Watch one run.

    A supervisor gives `start` and its pid. For an orphaned job both are missing. For a script that was started by
    hand, `process` is that script.
    """

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
        self.paths = paths
        self.run: dict[str, Any] = spec["run"]
        self.options: dict[str, Any] = spec["sidecar"]
        self.record = record
        self._started = time.monotonic() - max(0.0, time.time() - started)  # not affected by changes of the clock
        self._process = process
        self._supervisor = supervisor  # given, since a supervisor that was killed is no longer our parent
        self._cap = OutputCap(paths, self.options["log_cap_bytes"])
        self._output_size = -1
        self._beat_at = 0.0
        self._cards = CardWatch(self.options["gpu"])
        self._foreign_use_reported = False
        self._rules = RunRules(paths, spec, record, started)
        at_start = start or Start(started - _START_SLACK_SECONDS)
        self._metrics = RunMetrics(paths, spec, record, at_start, self._tree, self._rules.see_line)

    def watch(self) -> None:
        """Watch until the supervisor reports the end of the job (SIGTERM), or until an orphaned job has ended."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        while os.getppid() == self._supervisor:
            self._tick()
            if signal.sigtimedwait({signal.SIGTERM}, _TICK_SECONDS):
                self._last_look()
                return
        self.watch_orphan()

    def watch_orphan(self) -> None:
        """Watch a job whose supervisor is dead. Its exit code is lost, but stop and the time limit still work."""
        stopping = False
        output = OrphanedOutput(self.paths, self.record)
        while processes_of_run(self.run["id"]):
            output.keep_running()
            self._tick()
            why = self._reason_to_end()
            if why and not stopping:
                stopping = True
                self.record.event("stopping", why=why)  # first, so that the reason is known when the job has ended
                end_tree(lambda: processes_of_run(self.run["id"]), self.options["grace_seconds"])
            time.sleep(_TICK_SECONDS)
        output.settle()
        self._last_look()
        self.record.wake_server("events")

    def _reason_to_end(self) -> str:
        """Return why the job must end now, or an empty text. The time limit ignores changes of the system clock."""
        if self.record.is_stop_requested:
            return "stop"
        limit = self.run["time_limit_seconds"]
        return "time_limit" if limit and time.monotonic() - self._started >= limit else ""

    def watch_process(self) -> None:
        """Watch a process that we did not start until it ends."""
        assert self._process is not None
        self._beat()  # even if it has ended already: no other watcher is needed
        while self._process.is_alive:
            self._tick()
            time.sleep(_TICK_SECONDS)
        self._last_look()

    def _tick(self) -> None:
        self._beat()
        self._metrics.look()
        self._rules.look()
        self._check_output()
        if detection := self._cards.poll():
            started = [event for event in self.record.events() if event["event"] == "started"]
            cards = tuple(started[-1]["gpu_uuids"]) if started else ()
            self._metrics.add_cards([gpu for gpu in detection.gpus if gpu.uuid in cards])
            self._check_foreign_use(detection, cards)

    def _last_look(self) -> None:
        """Read all that the job left. A full disk gets some time to have room again."""
        deadline = time.monotonic() + _FULL_DISK_SECONDS
        while self._metrics.look(last=True) or (self._metrics.is_behind and time.monotonic() < deadline):
            self._beat()
            if self._metrics.is_behind:
                time.sleep(_TICK_SECONDS)
        while self._rules.look():
            self._beat()
        self._check_output()

    def _beat(self) -> None:
        """Touch the heartbeat file every two seconds. The first time, write into it who watches.

        Another watcher is started once this one is dead or silent for long.
        """
        if not self._beat_at:
            with passing_refusals():
                fd = os.open(self.paths.heartbeat, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                try:
                    os.write(fd, json.dumps(identity(os.getpid()).to_dict()).encode())
                finally:
                    os.close(fd)
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + _HEARTBEAT_SECONDS
            with passing_refusals():
                os.utime(self.paths.heartbeat)

    def _check_output(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            size = os.path.getsize(self.paths.output)
            # Even if it has not grown: a part that was spared for its numbers may have been read since.
            self._cap.apply(size, self._metrics.output_read_to, self._metrics.skip_output)
            if size != self._output_size:
                self._output_size = size
                self.record.wake_server("output")

    def _tree(self) -> set[int]:
        """Return the job's processes: all of the supervisor's except this monitor and the relay."""
        if self._process is not None:
            return {self._process.pid, *descendants_of(self._process.pid)} if self._process.is_alive else set()
        if self._supervisor is None or os.getppid() != self._supervisor:
            return processes_of_run(self.run["id"])
        tops = {pid for pid in children_of(self._supervisor) if pid != os.getpid() and not is_relay(pid)}
        return tops.union(*(descendants_of(top) for top in tops))

    def _check_foreign_use(self, detection: Detection, cards: tuple[str, ...]) -> None:
        """Record when foreign use of our cards starts and when it ends. `ContentionJudge` reads the last record."""
        if not self.options["gpu"].get("check_foreign"):
            return
        own = self._tree() | processes_of_run(self.run["id"])  # a changed process title may hide the run's id
        if not own:
            return  # the job has ended, and the cards may have their next holder
        foreign = foreign_processes(detection, cards, own)
        if bool(foreign) != self._foreign_use_reported:
            self.record.event("foreign_use", processes=[process.pid for process in foreign])
            self._foreign_use_reported = bool(foreign)


class MonitorProcess:
    """The monitor of a supervisor: forked when due, replaced when it dies, and given a last look at the end.

    `close_job_files` runs in the monitor's own process and closes what belongs to the job alone.
    """

    def __init__(
        self, paths: RunPaths, spec: dict[str, Any], record: RunJournal, close_job_files: Callable[[], None]
    ) -> None:
        self._paths = paths
        self._spec = spec
        self._record = record
        self._close_job_files = close_job_files
        self._started = 0.0
        self._at_start = Start(0.0)
        self._due_at = 0.0
        self._failed = False
        self.pid: int | None = None
        self.was_needed = False

    def job_started(self, started: float, at_start: Start) -> None:
        """Plan the first monitor. Most commands end before it is due."""
        self._started, self._at_start = started, at_start
        self._due_at = time.monotonic() + self._spec["sidecar"]["monitor_after_seconds"]

    @property
    def due_in(self) -> float | None:
        """Seconds until a monitor must be started, or None while one runs."""
        return None if self.pid is not None else self._due_at - time.monotonic()

    def start(self) -> None:
        """Fork a monitor. SIGTERM is blocked meanwhile, so that none is lost before the monitor is ready for it."""
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
            self._close_job_files()
            Monitor(self._paths, self._spec, self._record, self._started, self._at_start, supervisor).watch()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the process ends here; its traceback must reach the log
            traceback.print_exc()
        finally:
            os._exit(1)

    def note_end(self, pid: int, status: int) -> bool:
        """Return whether a reaped process was the monitor. If so, another one is due soon."""
        if pid != self.pid:
            return False
        self.pid = None
        self._failed = status != 0
        self._due_at = time.monotonic() + _PAUSE_SECONDS
        return True

    def close(self, sleep_and_reap: Callable[[float], None]) -> None:
        """Let the monitor take its last look. If it is killed meanwhile, start another one."""
        for _ in range(_LAST_LOOKS):
            if self.pid is None and has_something_to_take(self._paths, self._spec):
                self.start()  # the command ended before a monitor was due
            if self.pid is None or not self._wait_for_last_look(self.pid, sleep_and_reap):
                return

    def _wait_for_last_look(self, pid: int, sleep_and_reap: Callable[[float], None]) -> bool:
        """Return whether the monitor was killed by somebody else. A hung monitor is killed here."""
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
            sleep_and_reap(0.1)
        return self._failed and asked_at != float("inf")

    def _is_hung(self, asked_at: float, worked_at: float) -> bool:
        """Return whether the monitor hangs. One that uses the processor does not: a busy machine takes long."""
        now = time.monotonic()
        if now - max(asked_at, worked_at) <= _SILENCE_SECONDS:
            return now - asked_at > _LAST_LOOK_SECONDS
        try:
            return time.time() - os.path.getmtime(self._paths.heartbeat) > _SILENCE_SECONDS
        except FileNotFoundError:
            return True


class OutputCap:
    """Keep a runaway output from filling the disk: its head and tail stay, the middle becomes a hole in the file.

    The file is being appended to, so it cannot be cut or rewritten. A hole frees its blocks and moves no offset.
    Readers show one line for it (`services/runs/logs.py`).
    """

    def __init__(self, paths: RunPaths, cap_bytes: int) -> None:
        self._paths = paths
        self._cap = cap_bytes
        self._supported = cap_bytes > 0
        try:
            self._end = int(read_json(paths.output_gap)["end"])
        except FileNotFoundError:
            self._end = 0

    def apply(self, size: int, read_to: int, skip_to: Callable[[int], None]) -> None:
        """Once the kept part exceeds the cap, drop all but a quarter at the head and a quarter at the tail.

        A part that was not yet read for metrics is spared for a while. Then `skip_to` makes the reader skip it.
        """
        head = self._cap // 4 // _BLOCK * _BLOCK
        kept = size - max(0, self._end - head)
        if not self._supported or kept <= self._cap:
            return
        end = (size - self._cap // 4) // _BLOCK * _BLOCK
        if end > read_to and kept > self._cap + max(self._cap, _SPARED_BYTES):
            skip_to(end)
        else:
            end = min(end, read_to // _BLOCK * _BLOCK)
        if end > max(head, self._end) and self._punch(head, end):
            self._end = end
            write_json(self._paths.output_gap, {"start": head, "end": end})

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
        self._supported = False  # this file system has no holes, so the log stays whole
        return False
