"""Supervise one command: lease, start, wait, write the truth of its exit. Holds nothing but the job.

Every facility that may hang, grow or crash lives in the monitor; a monitor that dies is started again.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import select
import signal
import time
from collections.abc import Iterable
from typing import Any

from labwright.domain.failure import may_be_ended_by_slurm
from labwright.files import modified_at, passing_refusals
from labwright.processes import children_of, end_tree, identity
from labwright.sidecar.cards import Cards, ContentionJudge
from labwright.sidecar.job import (
    TERMINATED,
    JobProcess,
    JobTree,
    end_facts,
    facts_of_status,
    is_by_term,
    job_environment,
    start_job,
)
from labwright.sidecar.monitor import MonitorProcess
from labwright.sidecar.record import HeldFolder, RunJournal, load_spec
from labwright.sidecar.relay import Relay
from labwright.sidecar.slurm import StepLog, facts_of, forward
from labwright.sidecar.sources.start import Start, note_start
from labwright.sidecar.terminal import Terminal

_LIBC = ctypes.CDLL(None)  # once, before the forks
_PR_SET_CHILD_SUBREAPER = 36
_ALERTED_ENDS = ("exit_code", "time_limit")
_MOMENT_SECONDS = 0.02
_CONTROL_POLL_SECONDS = 1.0  # signals make it prompt; this is for a lost one, and for file systems without signals
_TERM_SPREAD_SECONDS = 0.5
_FULL_DISK_BYTES = 64 << 10


class Supervisor:
    def __init__(self, run_dir: str, variables: dict[str, str], attempt: int | None = None) -> None:
        self._folder = HeldFolder(run_dir)
        self.paths = self._folder.paths
        self.spec = load_spec(self.paths)
        self.run: dict[str, Any] = self.spec["run"]
        self.run["attempt"] = attempt or self.run["attempt"]
        self.options: dict[str, Any] = self.spec["sidecar"]
        self._slurm: dict[str, Any] | None = self.options.get("slurm")
        self.record = RunJournal(self.paths, self.run["id"], self.options["wake"])
        self._inherited = dict(os.environ)
        self._place = facts_of(self._inherited) if self._slurm else {}
        self._step_log = StepLog() if self._slurm else None
        self._variables = variables
        self._cards = Cards(self.options, self.record)
        self._job: JobProcess | None = None
        self._relay: Relay | None = None  # none where a terminal takes its place
        self._monitor = MonitorProcess(self.paths, self.spec, self.record, self._let_go_of_the_job)
        self._tree = JobTree(self.run["id"], self._monitor)
        self._started = 0.0
        self._began = 0.0  # the same by a clock that nobody sets
        self._disk_was_full = False
        self._at_start = Start(0.0)
        self._wall_seconds = 0.0
        self._stopping = ""
        self.exit_code = 0  # for whoever started us and wants to know

    def supervise(self) -> bool:
        """Answers whether this process is as good as new: nothing of the run is left in it, nor of any other."""
        if not self.record.claim(self.run["attempt"], **self._place):
            return False
        self._settle_in()
        if self._slurm and self.run["attempt"] > 1:
            last_seen = modified_at(self.paths.heartbeat)  # of the attempt before: ours does not beat yet
            self.record.event("requeued", attempt=self.run["attempt"], last_seen=last_seen)
        facts = self._live()  # if this fails we die with the lease: it is the job's, not ours, to hold
        self._cards.release()  # the truth may have to wait for the disk; the cards need not
        self.record.exit(facts, self._write_owed_output)
        if self._relay:
            self._relay.dismiss(self._sleep_and_reap)
        self._let_go(facts)
        self.exit_code = int(facts["exit_code"] or 0)
        return self._is_as_new()

    def _live(self) -> dict[str, Any]:
        judge = ContentionJudge(self.record, self.options["gpu"])
        environment = {**job_environment(self._folder.place, self.spec, self._inherited), **self._variables}
        self._relay = None if self.run["tty"] else Relay(self.paths.output)
        tries = 0
        while True:
            tries += 1
            environment["LABWRIGHT_TRY"] = str(tries)
            refusal = self._cards.acquire(self._rest_before_cards) or self._start(environment)
            if refusal:
                return self._ended(time.time(), **refusal)
            self._wait_for_job()
            ended_at = self._clear_up()
            if not self._cards.lease:  # nobody waits; and on Slurm the job may hear sooner than we that it is to end
                self._monitor.close(self._sleep_and_reap)
            facts = self._exit_facts()
            verdict = judge.judge(
                facts, self._cards.lease, self.paths.output, self._at_start.output_of(self.paths.output)
            )
            is_over = not verdict.retry or bool(self._stopping)
            if self._cards.lease:
                self._give_back_cards(for_good=is_over)
                self._monitor.close(self._sleep_and_reap)
            if is_over:
                self._alert_of_exit({**facts, **verdict.facts})
                return self._ended(ended_at, **{**facts, **verdict.facts})
            self._pause(verdict.delay_seconds)

    def _settle_in(self) -> None:
        with contextlib.suppress(PermissionError):  # already the leader of a session of its own
            os.setsid()
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        warning = self._slurm or {}
        self._wakeups = Wakeups(warning.get("warning_signal"), warning.get("warning_after_seconds"))
        self.record.reserve_exit()

    def _rest_before_cards(self, seconds: float) -> dict[str, Any] | None:
        self._sleep(seconds)
        if self.record.is_stop_requested:
            return {"status": "stopped", "reason": "stopped while waiting for a GPU"}
        return dict(TERMINATED) if self._wakeups.terminated else None

    def _give_back_cards(self, *, for_good: bool) -> None:
        """The job is gone and judged. Its last numbers may still take long to read; no card waits for that."""
        self._cards.release()
        if for_good:
            self.record.wake_server("over")

    def _start(self, environment: dict[str, str]) -> dict[str, Any] | None:
        if self.record.is_stop_requested:
            return {"status": "stopped", "reason": "stopped before it began"}
        if refusal := self._look_at_code():
            return refusal
        self._at_start = note_start(self.paths, self.spec)
        try:
            self._job = start_job(
                self._folder.place.command,
                self.options["workdir"],
                {**environment, **self._cards.variables()},
                self._cards.fds,
                self._relay.theirs if self._relay else Terminal(self.paths.output),
            )
        except OSError as error:
            words = f"The command could not be started: {error.filename or 'bash'}: {error.strerror or error}."
            return {"status": "failed", "reason": "could_not_start", "error": words}
        self._tree.begin(self._job.pid, self._relay)
        self._started, self._began = time.time(), time.monotonic()
        pipe = self._relay.pipe if self._relay else None
        job = identity(self._job.pid).to_dict()
        self.record.event("started", job=job, gpu_uuids=self._cards.uuids, output_pipe=pipe, wake=False, **self._place)
        self._tell_of_start()
        return None

    def _look_at_code(self, began: float | None = None) -> dict[str, Any] | None:
        """Whether it is what was approved: before the start, and once more when the run that began then has ended.

        The import waits until it is needed: few runs are a plan's, and hashing takes its time to load.
        """
        approved = self.options.get("approved")
        if not approved:
            return None
        from labwright.sidecar.approved_code import doubt_of, refusal_of

        if began is None:
            return refusal_of(approved["listing"], approved["project"])
        return doubt_of(approved["listing"], approved["project"], began)

    def _tell_of_start(self) -> None:
        """Unless it is over in a moment: then its start and its end are news together."""
        self._sleep(_MOMENT_SECONDS)
        self._tree.reap()
        if self._tree.status is None:
            self.record.wake_server("events")

    def _wait_for_job(self) -> None:
        began = time.monotonic()
        self._monitor.job_began(self._started, self._at_start)
        limit = self.run["time_limit_seconds"]
        while self._tree.status is None:
            self._folder.take_anew()
            if self._relay:
                self._relay.tend()
            due_in = self._monitor.due_in
            if due_in is not None and due_in <= 0:
                self._offer_input()
                self._monitor.start()
            if limit and time.monotonic() - began >= limit:
                self._end_job("time_limit")
            elif self.record.is_stop_requested:
                self._end_job("stop")
            elif self._wakeups.terminated:
                self._end_job("terminated")
            elif number := self._wakeups.take_warning():
                self._warn(number)
            elif self._tree.status is None:
                self._sleep(self._until_next(began + limit if limit else None))
            self._tree.reap()
        self._folder.take_anew()

    def _warn(self, number: int) -> None:
        self.record.event("warned", signal=number)
        forward(number, self._tree.members())

    def _until_next(self, deadline: float | None) -> float:
        waits = [
            _CONTROL_POLL_SECONDS,
            self._monitor.due_in,
            self._relay.due_in if self._relay else None,
            self._wakeups.warning_in,
            deadline - time.monotonic() if deadline else None,
        ]
        return max(0.0, min(wait for wait in waits if wait is not None))

    def _end_job(self, why: str) -> None:
        self._stopping = why
        self.record.event("stopping", why=why)
        end_tree(self._tree.members, self.options["grace_seconds"], self._pump_and_reap)

    def _clear_up(self) -> float:
        """Nothing of the job is left, and what it printed is in the file. Answers when it ended."""
        self._disk_was_full = self._is_disk_full()  # now: somebody may make room while the last words are read
        self._end_leftovers()
        ended_at, self._wall_seconds = time.time(), time.monotonic() - self._began
        if self._relay:
            self._relay.settle(self._sleep_and_reap)
        return ended_at

    def _end_leftovers(self) -> None:
        if self._terminal:
            self._terminal.drain()
        if count := self._tree.end_leftovers(self._sleep_and_reap):
            self.record.event("warning", text=f"{count} process(es) outlived the command and were ended.")

    def _sleep(self, seconds: float) -> None:
        """Until a signal, a key, terminal output or the time."""
        terminal = self._terminal
        ready = self._wakeups.sleep(seconds, terminal.sources if terminal else ())
        if terminal:
            terminal.pump(ready)

    @property
    def _terminal(self) -> Terminal | None:
        return self._job.terminal if self._job else None

    def _sleep_and_reap(self, seconds: float) -> None:
        self._sleep(seconds)
        self._tree.reap()

    def _pump_and_reap(self) -> None:
        if self._terminal:
            self._terminal.drain()
        self._tree.reap()

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.record.is_stop_requested:
            self._sleep(min(_CONTROL_POLL_SECONDS, deadline - time.monotonic()))

    def _write_owed_output(self) -> bool:
        """What a terminal showed; of anything else the relay takes care."""
        return self._terminal.flush() if self._terminal else True

    def _let_go_of_the_job(self) -> None:
        """In the monitor: the lease is the job's, nobody reads a terminal once the supervisor is gone, and the end of
        the pipe tells the relay that all is printed."""
        for fd in self._cards.fds:
            os.close(fd)
        if self._terminal:
            self._terminal.close()
        if self._relay:
            self._relay.close()

    def _offer_input(self) -> None:
        """Only now: of the commands that end sooner nobody types into one, and a file for each costs more than they."""
        assert self._job is not None
        with passing_refusals(), contextlib.suppress(FileNotFoundError):  # refused or deleted: nobody can type then
            if os.path.lexists(self.paths.stdin):
                os.unlink(self.paths.stdin)
            os.symlink(self._job.input_path, self.paths.stdin)

    def _exit_facts(self) -> dict[str, Any]:
        status = self._tree.status or 0
        if not self._stopping and is_by_term(status) and self.record.is_stop_requested:
            self._stopping = "stop"  # somebody who was sent to watch the job obeyed first
        if self._step_log and not self._stopping:
            self._notice_termination(status, self._step_log)
        facts = facts_of_status(status)
        if facts["error"] and self._disk_was_full:
            facts["error"] += "; the disk of its output was full"
        doubt = None if self._stopping else self._look_at_code(self._started)
        return {
            **facts,
            **end_facts(self._stopping, facts["exit_code"], self.record.reason_to_stop, self.run["time_limit_seconds"]),
            **(doubt or {}),
        }

    def _is_disk_full(self) -> bool:
        disk = os.statvfs(self.paths.dir)
        return disk.f_bavail * disk.f_frsize < _FULL_DISK_BYTES

    def _notice_termination(self, status: int, step_log: StepLog) -> None:
        """Slurm tells everybody to end; the job may have heard it first, and ended as it liked."""
        if is_by_term(status):
            self._sleep(_TERM_SPREAD_SECONDS)
        if self._wakeups.terminated or step_log.says_that_it_is_to_end():
            self._stopping = "terminated"

    def _alert_of_exit(self, facts: dict[str, Any]) -> None:
        """A failure with a reason of its own, such as a full card, has been told already."""
        if facts["reason"] in _ALERTED_ENDS and self.options.get("alerts", {}).get("builtin", {}).get("exit", True):
            choices = ["ignore", "rerun"]
            self.record.event("alert", rule="exit", message=facts["error"], severity="critical", choices=choices)

    def _ended(self, at: float, **facts: Any) -> dict[str, Any]:
        return {
            "exit_code": None,
            "signal": None,
            "error": None,
            **facts,
            "attempt": self.run["attempt"],
            "started_at": self._started or None,
            "ended_at": at,
            "usage": self._usage(),
        }

    def _usage(self) -> dict[str, float]:
        used = {"cpu_seconds": self._tree.cpu_seconds, "max_memory_mb": self._tree.max_memory_mb}
        return {name: round(value, 3) for name, value in (used | {"wall_seconds": self._wall_seconds}).items()}

    def _is_as_new(self) -> bool:
        """Only after a plain command that was over before anybody watched it."""
        plain = not (self.run["tty"] or self.options["gpu"] or self._stopping or self._wakeups.terminated)
        return plain and not self._monitor.was_needed and not children_of(os.getpid())

    def _let_go(self, facts: dict[str, Any]) -> None:
        self._wakeups.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.paths.stdin)
        if self._slurm and not may_be_ended_by_slurm(facts):  # it may start again and need them
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.paths.secrets)
        self._folder.close()


_SAME_WARNING_SECONDS = 90.0  # so long after ours may come Slurm's, which was asked for a minute later
_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeups:
    def __init__(self, warning_signal: int | None, warning_after_seconds: float | None = None) -> None:
        self.terminated = False  # by TERM: whoever runs this machine wants us gone
        self._warned = False  # by the signal that Slurm may send before that
        self._warning_signal = warning_signal
        self._warning_due = None if warning_after_seconds is None else time.monotonic() + warning_after_seconds
        self._warned_at = -math.inf  # by ourselves
        self._pipe = self._reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (*_SIGNALS, *([warning_signal] if warning_signal else [])):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number == signal.SIGTERM:
            self.terminated = True
        elif number == self._warning_signal:
            self._warned = True

    @property
    def warning_in(self) -> float | None:
        """Seconds until the job is to be warned; None where nobody has to."""
        return None if self._warning_due is None else max(0.0, self._warning_due - time.monotonic())

    def take_warning(self) -> int | None:
        """The signal that the job is to get now: its time has come, or somebody has sent it."""
        now = time.monotonic()
        was_sent, self._warned = self._warned, False
        if self._warning_due is not None and now >= self._warning_due:
            self._warning_due, self._warned_at = None, now
            return self._warning_signal
        return self._warning_signal if was_sent and now - self._warned_at > _SAME_WARNING_SECONDS else None

    def sleep(self, seconds: float, sources: Iterable[int] = ()) -> list[int]:
        """Until a signal, the time, or something to read in one of the sources: which of them have."""
        ready, _, _ = select.select([self._reader, *sources], [], [], max(0.0, seconds))
        if self._reader in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, 4096)
        return ready

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for fd in self._pipe:
            os.close(fd)
