"""Supervise one command: lease its GPUs, start it, wait for it and record how it ended.

Everything that may hang, grow or crash runs in the monitor process. A monitor that dies is started again.
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
from labwright.sidecar.cause import cause_in, last_line_in
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

_LIBC = ctypes.CDLL(None)  # loaded once, before the forks
_PR_SET_CHILD_SUBREAPER = 36
_ALERTED_REASONS = ("exit_code", "time_limit")
_SHORT_COMMAND_SECONDS = 0.02
_CONTROL_POLL_SECONDS = 1.0  # fallback for a lost signal and for file systems without signals
_TERM_SPREAD_SECONDS = 0.5
_FULL_DISK_BYTES = 64 << 10
_SAME_WARNING_SECONDS = 90.0  # Slurm's own warning may follow ours within this time; it was requested a minute later
_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


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
        self._slurm_facts = facts_of(self._inherited) if self._slurm else {}
        self._step_log = StepLog() if self._slurm else None
        self._variables = variables
        self._cards = Cards(self.options, self.record)
        self._job: JobProcess | None = None
        self._relay: Relay | None = None  # None if the job has a terminal
        self._monitor = MonitorProcess(self.paths, self.spec, self.record, self._close_job_files)
        self._tree = JobTree(self.run["id"], self._monitor)
        self._started = 0.0
        self._started_monotonic = 0.0  # the same moment on a clock that nobody can set
        self._disk_was_full = False
        self._at_start = Start(0.0)
        self._wall_seconds = 0.0
        self._stopping = ""  # why we ended the job: stop, time_limit or terminated
        self.exit_code = 0

    def supervise(self) -> bool:
        """Run the command to its end. Return whether this process can supervise another run."""
        if not self.record.claim(self.run["attempt"], **self._slurm_facts):
            return False
        with contextlib.suppress(PermissionError):  # already a session leader
            os.setsid()
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        warning = self._slurm or {}
        self._wakeups = Wakeups(warning.get("warning_signal"), warning.get("warning_after_seconds"))
        self.record.reserve_exit()
        if self._slurm and self.run["attempt"] > 1:
            last_seen = modified_at(self.paths.heartbeat)  # from the previous attempt: this one has no heartbeat yet
            self.record.event("requeued", attempt=self.run["attempt"], last_seen=last_seen)
        facts = self._run_job()  # if this raises, this process ends and its lease with it: only the job may hold it
        self._cards.release()  # before the exit file, which may have to wait for room on the disk
        self.record.exit(facts, self._write_owed_output)
        if self._relay:
            self._relay.dismiss(self._sleep_and_reap)
        self._clean_up(facts)
        self.exit_code = int(facts["exit_code"] or 0)
        return self._can_be_reused()

    def _run_job(self) -> dict[str, Any]:
        """Try the command until it ends for good. Return the facts of its end."""
        judge = ContentionJudge(self.record, self.options["gpu"])
        environment = {**job_environment(self._folder.place, self.spec, self._inherited), **self._variables}
        self._relay = None if self.run["tty"] else Relay(self.paths.output)
        tries = 0
        while True:
            tries += 1
            environment["LABWRIGHT_TRY"] = str(tries)
            refusal = self._cards.acquire(self._wait_for_cards) or self._start(environment)
            if refusal:
                return self._end_record(time.time(), **refusal)
            self._wait_for_job()
            ended_at = self._end_leftovers()
            if not self._cards.lease:
                # Nobody waits for cards. On Slurm, a signal to end may reach the job before it reaches us.
                self._monitor.close(self._sleep_and_reap)
            facts = self._exit_facts()
            decision = judge.judge(
                facts, self._cards.lease, self.paths.output, self._at_start.output_of(self.paths.output)
            )
            is_over = not decision.retry or bool(self._stopping)
            if self._cards.lease:
                # Reading the last numbers may take long. The cards do not wait for that.
                self._cards.release()
                if is_over:
                    self.record.wake_server("over")
                self._monitor.close(self._sleep_and_reap)
            if is_over:
                facts = {**facts, **decision.facts}
                self._alert_on_failure(facts)
                return self._end_record(ended_at, **facts)
            self._pause(decision.delay_seconds)

    def _wait_for_cards(self, seconds: float) -> dict[str, Any] | None:
        """Sleep between two attempts to get cards. Return a reason to give up, if there is one."""
        self._sleep(seconds)
        if self.record.is_stop_requested:
            return {"status": "stopped", "reason": "stopped while waiting for a GPU"}
        return dict(TERMINATED) if self._wakeups.terminated else None

    def _start(self, environment: dict[str, str]) -> dict[str, Any] | None:
        """Start the command. Return why it could not be started, or None."""
        if self.record.is_stop_requested:
            return {"status": "stopped", "reason": "stopped before it began"}
        if refusal := self._check_code():
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
            message = f"The command could not be started: {error.filename or 'bash'}: {error.strerror or error}."
            return {"status": "failed", "reason": "could_not_start", "error": message}
        self._tree.follow(self._job.pid, self._relay)
        self._started, self._started_monotonic = time.time(), time.monotonic()
        self.record.event(
            "started",
            job=identity(self._job.pid).to_dict(),
            gpu_uuids=self._cards.uuids,
            output_pipe=self._relay.pipe if self._relay else None,
            wake=False,
            **self._slurm_facts,
        )
        self._sleep(_SHORT_COMMAND_SECONDS)
        self._tree.reap()
        if self._tree.status is None:  # a command that has ended already is reported once, with its end
            self.record.wake_server("events")
        return None

    def _check_code(self, started: float | None = None) -> dict[str, Any] | None:
        """Compare the code with what was approved, before the start or (with `started`) after the end.

        The import is lazy: few runs belong to a plan, and hashing is slow to import.
        """
        approved = self.options.get("approved")
        if not approved:
            return None
        from labwright.sidecar.approved_code import doubt_of, refusal_of

        if started is None:
            return refusal_of(approved["listing"], approved["project"])
        return doubt_of(approved["listing"], approved["project"], started)

    def _wait_for_job(self) -> None:
        waiting_since = time.monotonic()
        self._monitor.job_started(self._started, self._at_start)
        limit = self.run["time_limit_seconds"]
        while self._tree.status is None:
            self._folder.reopen_if_replaced()
            if self._relay:
                self._relay.keep_running()
            due_in = self._monitor.due_in
            if due_in is not None and due_in <= 0:
                self._link_stdin()
                self._monitor.start()
            if limit and time.monotonic() - waiting_since >= limit:
                self._end_job("time_limit")
            elif self.record.is_stop_requested:
                self._end_job("stop")
            elif self._wakeups.terminated:
                self._end_job("terminated")
            elif number := self._wakeups.take_warning():
                self.record.event("warned", signal=number)
                forward(number, self._tree.members())
            elif self._tree.status is None:
                self._sleep(self._seconds_to_next_event(waiting_since + limit if limit else None))
            self._tree.reap()
        self._folder.reopen_if_replaced()

    def _seconds_to_next_event(self, deadline: float | None) -> float:
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
        end_tree(self._tree.members, self.options["grace_seconds"], self._drain_and_reap)

    def _end_leftovers(self) -> float:
        """End the processes that outlived the command, and move all output into the file. Return the end time."""
        disk = os.statvfs(self.paths.dir)
        # Check the disk now: there may be room again by the time the last output is read.
        self._disk_was_full = disk.f_bavail * disk.f_frsize < _FULL_DISK_BYTES
        if self._terminal:
            self._terminal.drain()
        if count := self._tree.end_leftovers(self._sleep_and_reap):
            self.record.event("warning", text=f"{count} process(es) outlived the command and were ended.")
        ended_at, self._wall_seconds = time.time(), time.monotonic() - self._started_monotonic
        if self._relay:
            self._relay.settle(self._sleep_and_reap)
        return ended_at

    def _sleep(self, seconds: float) -> None:
        """Sleep until a signal, a key, terminal output or the timeout."""
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

    def _drain_and_reap(self) -> None:
        if self._terminal:
            self._terminal.drain()
        self._tree.reap()

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.record.is_stop_requested:
            self._sleep(min(_CONTROL_POLL_SECONDS, deadline - time.monotonic()))

    def _write_owed_output(self) -> bool:
        """Write what the terminal still holds. Return whether all is written. A pipe is the relay's task."""
        return self._terminal.flush() if self._terminal else True

    def _close_job_files(self) -> None:
        """Close, in the monitor process, the descriptors that belong to the job or the supervisor.

        The lease belongs to the job. Nobody reads a terminal after the supervisor has ended. And the relay ends when
        the last end of its pipe is closed.
        """
        for fd in self._cards.fds:
            os.close(fd)
        if self._terminal:
            self._terminal.close()
        if self._relay:
            self._relay.close()

    def _link_stdin(self) -> None:
        """Make `stdin` in the run folder lead to the job's input.

        Not at the start: most commands end sooner, and a link for each of them costs too much.
        """
        assert self._job is not None
        with passing_refusals(), contextlib.suppress(FileNotFoundError):  # without the link nobody can type
            if os.path.lexists(self.paths.stdin):
                os.unlink(self.paths.stdin)
            os.symlink(self._job.input_path, self.paths.stdin)

    def _exit_facts(self) -> dict[str, Any]:
        status = self._tree.status or 0
        if not self._stopping and is_by_term(status) and self.record.is_stop_requested:
            self._stopping = "stop"  # another watcher of the job handled the request first
        if self._step_log and not self._stopping:
            # Slurm signals every process of the job. The job may end before the signal reaches this process.
            if is_by_term(status):
                self._sleep(_TERM_SPREAD_SECONDS)
            if self._wakeups.terminated or self._step_log.announces_end():
                self._stopping = "terminated"
        facts = facts_of_status(status)
        if facts["error"]:
            facts["error"] = self._explained(facts)
        if facts["error"] and self._disk_was_full:
            facts["error"] += "; the disk of its output was full"
        doubt = None if self._stopping else self._check_code(self._started)
        return {
            **facts,
            **end_facts(self._stopping, facts["exit_code"], self.record.stop_reason, self.run["time_limit_seconds"]),
            **(doubt or {}),
        }

    def _explained(self, facts: dict[str, Any]) -> str:
        """Return why the job failed, in the words of its own output if they say it."""
        output, start = self.paths.output, self._at_start.output_of(self.paths.output)
        error: str = facts["error"]
        cause = cause_in(output, start)
        if cause:
            return f"{error}: {cause}" if facts["signal"] else cause
        last_line = "" if facts["signal"] else last_line_in(output, start)
        return f'{error}, last line: "{last_line}"' if last_line else error

    def _alert_on_failure(self, facts: dict[str, Any]) -> None:
        """Raise the alert `exit`. Failures with a more specific reason have their own alert already."""
        if facts["reason"] in _ALERTED_REASONS and self.options.get("alerts", {}).get("builtin", {}).get("exit", True):
            choices = ["ignore", "rerun"]
            self.record.event("alert", rule="exit", message=facts["error"], severity="critical", choices=choices)

    def _end_record(self, ended_at: float, **facts: Any) -> dict[str, Any]:
        usage = {
            "cpu_seconds": self._tree.cpu_seconds,
            "max_memory_mb": self._tree.max_memory_mb,
            "wall_seconds": self._wall_seconds,
        }
        return {
            "exit_code": None,
            "signal": None,
            "error": None,
            **facts,
            "attempt": self.run["attempt"],
            "started_at": self._started or None,
            "ended_at": ended_at,
            "usage": {name: round(value, 3) for name, value in usage.items()},
        }

    def _can_be_reused(self) -> bool:
        """True only after a plain command that ended before it needed a monitor and left no child."""
        plain = not (self.run["tty"] or self.options["gpu"] or self._stopping or self._wakeups.terminated)
        return plain and not self._monitor.was_needed and not children_of(os.getpid())

    def _clean_up(self, facts: dict[str, Any]) -> None:
        self._wakeups.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.paths.stdin)
        if self._slurm and not may_be_ended_by_slurm(facts):  # a requeued job needs its secrets again
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.paths.secrets)
        self._folder.close()


class Wakeups:
    """Sleep until something happens. Signals only wake the sleeper; SIGTERM and the warning signal are remembered."""

    def __init__(self, warning_signal: int | None, warning_after_seconds: float | None = None) -> None:
        self.terminated = False  # by SIGTERM
        self._warning_received = False  # Slurm may send the warning signal before SIGTERM
        self._warning_signal = warning_signal
        self._warning_due = None if warning_after_seconds is None else time.monotonic() + warning_after_seconds
        self._warned_at = -math.inf  # when we passed a warning on by our own clock
        self._pipe = self._reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (*_SIGNALS, *([warning_signal] if warning_signal else [])):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number == signal.SIGTERM:
            self.terminated = True
        elif number == self._warning_signal:
            self._warning_received = True

    @property
    def warning_in(self) -> float | None:
        """Seconds until the job must be warned, or None."""
        return None if self._warning_due is None else max(0.0, self._warning_due - time.monotonic())

    def take_warning(self) -> int | None:
        """Return the signal to send to the job now, because it is due or was received, or None."""
        now = time.monotonic()
        received, self._warning_received = self._warning_received, False
        if self._warning_due is not None and now >= self._warning_due:
            self._warning_due, self._warned_at = None, now
            return self._warning_signal
        return self._warning_signal if received and now - self._warned_at > _SAME_WARNING_SECONDS else None

    def sleep(self, seconds: float, sources: Iterable[int] = ()) -> list[int]:
        """Sleep until a signal, the timeout or input in one of `sources`. Return the readable descriptors."""
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
