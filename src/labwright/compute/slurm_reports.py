"""Make what Slurm said the database's. A run's `exit.json` is the truth; Slurm's word counts where there is none."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labwright.compute.ingest import (
    SLURM_HELD_RULE,
    apply_exit,
    begin_attempt,
    clear_alerts,
    end_run,
    raise_alert,
    read_exit,
)
from labwright.compute.lab import Lab
from labwright.compute.launchers import Launch
from labwright.compute.launchers.slurm import SLURM, Cancelled, NotSubmitted, Report, Submitted, Troubled
from labwright.compute.run_folder import make_run_folder
from labwright.compute.slurm.batch import runs_of_array
from labwright.compute.slurm.states import Ending, JobRow, Phase, ending_of
from labwright.compute.slurm.watch import Seen, Unanswered
from labwright.domain.actor import SYSTEM
from labwright.domain.alert import Severity
from labwright.domain.clock import rfc3339
from labwright.domain.errors import NotFound
from labwright.domain.ids import ARRAY, RUN, is_id
from labwright.domain.run import ACTIVE, Run, RunStatus
from labwright.store import runs
from labwright.store.database import Transaction

log = logging.getLogger(__name__)
_ACTOR = str(SYSTEM)
_EXIT_PATIENCE_SECONDS = 5.0  # between Slurm's word and a file that another node wrote
_HEARTBEAT_PATIENCE_SECONDS = 30.0
_LEFTOVER_SECONDS = 20.0
_LOG_TAIL_BYTES = 500
_OUT_OF_MEMORY = "memory limit"  # in slurmd's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """The row of squeue that is about one run, and the job's id as scancel wants it."""

    row: JobRow
    job_id: str


class SlurmReports:
    def __init__(self, lab: Lab, update: Callable[[str], Run | None]) -> None:
        self._lab = lab
        self._update = update
        self._over_since: dict[str, float] = {}  # runs whose job is over and who have not said so themselves
        self._left_since: dict[str, float] = {}  # runs that have ended, and whose job has not
        self._arrays: dict[str, list[str] | None] = {}

    def apply(self) -> None:
        for report in self._lab.slurm.reports():
            self._apply(report)

    def keeps_back(self) -> bool:
        """Whether starting anything is of no use now: Slurm would not take it."""
        return bool(self._lab.slurm_silence)

    def _apply(self, report: Report) -> None:
        if isinstance(report, Submitted):
            self._submitted(report)
        elif isinstance(report, NotSubmitted):
            self._not_submitted(report)
        elif isinstance(report, Cancelled):
            self._cancelled(report.run_id)
        elif isinstance(report, Troubled):
            self._troubled(report)
        elif isinstance(report, Seen):
            self._seen(report)
        else:
            self._unanswered(report)

    # -- what came of orders

    def _submitted(self, report: Submitted) -> None:
        with self._lab.db.transaction() as tx:
            for run_id, job_id in report.job_ids.items():
                run = runs.get(tx.connection, run_id)
                if run.is_active and run.slurm_job_id != job_id:
                    runs.change(tx, run, run.evolve(slurm_job_id=job_id), _ACTOR)

    def _not_submitted(self, report: NotSubmitted) -> None:
        with self._lab.db.transaction() as tx:
            for run_id in report.run_ids:
                run = runs.get(tx.connection, run_id)
                if run.status is RunStatus.LAUNCHING:
                    self._give_back(tx, run, report)

    def _give_back(self, tx: Transaction, run: Run, report: NotSubmitted) -> None:
        reason = f"Slurm does not take it now: {report.words} Trying again."
        if run.stop_requested and not report.in_doubt:
            end_run(tx, run, RunStatus.STOPPED, reason="stopped before it began")
        elif report.for_good:
            end_run(tx, run, RunStatus.FAILED, reason="slurm_refused", error=report.words)
        elif report.in_doubt:  # the next answer of squeue tells whether it is there
            runs.change(tx, run, run.evolve(status_reason=reason), _ACTOR)
        else:
            runs.change(tx, run, run.move(RunStatus.QUEUED, status_reason=reason), _ACTOR)

    def _cancelled(self, run_id: str) -> None:
        """It never began, or its sidecar finds the stop file first thing: either way it is stopped."""
        with self._lab.db.transaction() as tx:
            run = runs.get(tx.connection, run_id)
            if run.is_active and not self._has_begun(run):
                end_run(tx, run, RunStatus.STOPPED, reason="stopped before it began")

    def _troubled(self, report: Troubled) -> None:
        for run_id in report.run_ids:
            run = runs.get(self._lab.db.reader(), run_id)
            if run.is_active:
                self._say(run, f"{report.words} Trying again.")

    # -- what squeue said

    def _unanswered(self, report: Unanswered) -> None:
        """Files are believed without Slurm's comment then; whoever waits is told why."""
        for run in self._active():
            facts = self._exit_of(run)
            if facts is not None and facts["reason"] != "terminated":
                self._end_by_file(run, facts)
            elif not self._has_begun(run):
                self._say(run, f"Slurm does not answer: {report.words}")

    def _seen(self, seen: Seen) -> None:
        jobs = self._by_run(seen.rows)
        active = self._active()
        for run in active:
            if not self._lab.slurm.was_sent_after(run.id, seen.asked_at):
                self._compare(run, jobs.get(run.id), seen)
        self._cancel_leftovers(jobs, {run.id for run in active})

    def _cancel_leftovers(self, jobs: dict[str, RunJob], active: set[str]) -> None:
        """A controller that crashed comes back with a state some seconds old, and holds nodes for what has ended."""
        for run_id, job in jobs.items():
            if run_id in active or job.row.phase is Phase.ENDED or not is_id(run_id, RUN):
                self._left_since.pop(run_id, None)
            elif time.monotonic() - self._left_since.setdefault(run_id, time.monotonic()) > _LEFTOVER_SECONDS:
                self._cancel_leftover(run_id, job.job_id)

    def _cancel_leftover(self, run_id: str, job_id: str) -> None:
        self._left_since.pop(run_id)
        try:
            run = runs.get(self._lab.db.reader(), run_id)
        except NotFound:
            return  # another project's
        if run.is_terminal:
            log.warning("%s has ended (%s), yet Slurm still has job %s of it", run_id, run.status, job_id)
            self._lab.slurm.cancel(job_id)

    def _active(self) -> list[Run]:
        return [run for run in runs.with_status(self._lab.db.reader(), *ACTIVE) if run.launcher == SLURM]

    def _by_run(self, rows: tuple[JobRow, ...]) -> dict[str, RunJob]:
        """Of two jobs for one run (sbatch was heard twice) the one that is not over counts."""
        found: dict[str, RunJob] = {}
        for row in rows:
            for run_id, task in self._runs_of(row):
                known = found.get(run_id)
                if known is None or known.row.phase is Phase.ENDED:
                    found[run_id] = RunJob(row=row, job_id=row.id_of(task))
        return found

    def _runs_of(self, row: JobRow) -> list[tuple[str, int | None]]:
        if row.tasks is None:
            return [(row.name, None)]
        if not row.name.startswith(f"{ARRAY}-"):
            return []
        if row.name not in self._arrays:
            known = runs_of_array(self._lab.paths, row.name)
            self._arrays[row.name] = None if known is None else list(known)
        members = self._arrays[row.name] or []
        return [(members[task], task) for task in row.tasks if task < len(members)]

    def _compare(self, run: Run, job: RunJob | None, seen: Seen) -> None:
        if job is None:
            self._unknown(run, seen)
            return
        if job.row.phase is not Phase.ENDED:
            self._over_since.pop(run.id, None)
        if job.row.phase is Phase.PENDING:
            self._pending(run, job, seen)
        elif job.row.phase is Phase.ENDED:
            self._over(run, job.row)
        elif not self._has_begun(run):
            self._say(run, f"Slurm: starting on {job.row.nodes}", job.job_id)
        elif job.row.state == "SUSPENDED":
            self._say(run, "Slurm: suspended", job.job_id)

    def _pending(self, run: Run, job: RunJob, seen: Seen) -> None:
        if seen.had_started.get(run.id) == run.attempt and run.status is RunStatus.RUNNING:
            with self._lab.db.transaction() as tx:
                fresh = runs.get(tx.connection, run.id)
                begin_attempt(tx, fresh, run.attempt + 1, f"requeued by Slurm; {job.row.pending_words}")
        elif run.status is RunStatus.LAUNCHING:
            if run.status_reason != job.row.pending_words:
                self._ask_about_hold(run, job)
            self._say(run, job.row.pending_words, job.job_id)

    def _ask_about_hold(self, run: Run, job: RunJob) -> None:
        """Not released by us: whatever kept the node from starting it may still be so, and only a person can look."""
        if not job.row.is_stuck:
            if run.status_reason.startswith("Slurm: pending"):  # perhaps for that very reason
                with self._lab.db.transaction() as tx:
                    clear_alerts(tx, run, SLURM_HELD_RULE)
            return
        with self._lab.db.transaction() as tx:
            words = f"Slurm could not start job {job.job_id} and holds it now ({job.row.reason}). It waits until "
            words += f"somebody sees to its node and releases it: scontrol release {job.job_id}"
            raise_alert(tx, run, SLURM_HELD_RULE, words, Severity.WARNING, ("ignore", "stop"))

    def _unknown(self, run: Run, seen: Seen) -> None:
        """Never heard of: it was not sent. Not heard of any more: it is over, unless its sidecar shows life."""
        sent_since = run.launched_at is not None and run.launched_at > rfc3339(seen.asked_at)
        if sent_since or self._is_beating(run):
            return
        if not self._has_begun(run) and run.slurm_job_id is None:
            self._send_again(run)
        else:
            words = f"Slurm knows nothing of job {run.slurm_job_id} any more."
            self._end_by_word(run, Ending(status=RunStatus.LOST, reason="sidecar_lost", words=words))

    def _send_again(self, run: Run) -> None:
        if run.stop_requested:
            self._cancelled(run.id)
            return
        try:
            make_run_folder(self._lab, run)
        except OSError as error:
            log.warning("%s cannot be sent to Slurm again yet: %s", run.id, error)
            return
        self._lab.slurm.launch([Launch(run, {})])

    def _over(self, run: Run, row: JobRow) -> None:
        alive = row.state == "NODE_FAIL" and self._is_beating(run)  # slurmd died, and the job did not
        if not alive:
            ending = ending_of(row)
            log_words = self._log_tail(run, row) if ending.reason == "sidecar_lost" else ""
            status, reason = ending.status, ending.reason
            if _OUT_OF_MEMORY in log_words:  # Slurm's state may say no more than FAILED
                status, reason = RunStatus.FAILED, "out_of_memory"
            self._end_by_word(run, Ending(status=status, reason=reason, words=ending.words + log_words))

    # -- ending

    def _end_by_word(self, run: Run, ending: Ending) -> None:
        """Only once the files had time to arrive; what they say comes first."""
        self._update(run.id)
        current = runs.get(self._lab.db.reader(), run.id)
        facts = self._exit_of(current)
        since = self._over_since.setdefault(run.id, time.monotonic())
        if current.is_terminal or (facts is None and time.monotonic() - since < _EXIT_PATIENCE_SECONDS):
            return
        self._over_since.pop(run.id, None)
        if facts is not None and ending.reason == "sidecar_lost":
            self._end_by_file(current, facts)  # Slurm knows no better reason
        else:
            self._end(current, ending, facts or {})

    def _end_by_file(self, run: Run, facts: dict[str, Any]) -> None:
        with self._lab.db.transaction() as tx:
            fresh = runs.get(tx.connection, run.id)
            if fresh.is_active:
                apply_exit(tx, fresh, facts)
        self._forget_secrets(run)

    def _end(self, run: Run, ending: Ending, facts: dict[str, Any]) -> None:
        known: dict[str, Any] = {name: facts[name] for name in ("exit_code", "signal", "usage") if name in facts}
        if "ended_at" in facts:
            known["ended_at"] = rfc3339(facts["ended_at"])
        with self._lab.db.transaction() as tx:
            fresh = runs.get(tx.connection, run.id)
            if fresh.is_terminal:
                return
            if fresh.stop_requested:
                end_run(tx, fresh, RunStatus.STOPPED, reason="stopped on request", **known)
            else:
                end_run(tx, fresh, ending.status, reason=ending.reason, error=ending.words, **known)
        self._forget_secrets(run)

    def _forget_secrets(self, run: Run) -> None:
        """Kept until now, since Slurm might have started it again."""
        try:
            os.unlink(self._lab.paths.run(run.id).secrets)
        except FileNotFoundError:
            return

    # -- looking

    def _exit_of(self, run: Run) -> dict[str, Any] | None:
        facts = read_exit(self._lab.paths.run(run.id))
        return facts if facts is not None and facts["attempt"] == run.attempt else None

    def _has_begun(self, run: Run) -> bool:
        return os.path.exists(self._lab.paths.run(run.id).claim(run.attempt))

    def _is_beating(self, run: Run) -> bool:
        try:
            beat = os.path.getmtime(self._lab.paths.run(run.id).heartbeat)
        except FileNotFoundError:
            return False
        return time.time() - beat < _HEARTBEAT_PATIENCE_SECONDS

    def _say(self, run: Run, reason: str, job_id: str | None = None) -> None:
        facts = {"status_reason": reason, "slurm_job_id": job_id or run.slurm_job_id}
        if run.status_reason == reason and run.slurm_job_id == facts["slurm_job_id"]:
            return
        with self._lab.db.transaction() as tx:
            fresh = runs.get(tx.connection, run.id)
            if fresh.status is run.status:
                runs.change(tx, fresh, fresh.evolve(**facts), _ACTOR)

    def _log_tail(self, run: Run, row: JobRow) -> str:
        """What Slurm, or a sidecar that could not begin, wrote last."""
        path = self._lab.paths.run(run.id).slurm_log
        if row.tasks is not None:
            path = self._lab.paths.array(row.name).log(row.tasks[0])
        try:
            with open(path, "rb") as file:
                tail = file.read()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
        except FileNotFoundError:
            return ""
        return f" Its log ends: {tail}" if tail else ""
