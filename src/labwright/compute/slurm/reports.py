"""Apply reports of Slurm to the database. A run's `exit.json` decides; Slurm's state is used if there is none."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from labwright.compute.lab import Lab
from labwright.compute.runs.endings import end_run
from labwright.compute.runs.ingest import begin_attempt
from labwright.compute.runs.launching import make_ready
from labwright.compute.slurm.endings import SlurmEndings
from labwright.compute.slurm.held_jobs import SlurmStuck, StuckJob
from labwright.compute.slurm.jobs import (
    CANCELLED,
    PENDING_MESSAGE,
    Cancelled,
    JobEnding,
    JobListing,
    JobRow,
    NotSubmitted,
    Phase,
    Recalled,
    SlurmReport,
    StopDelayed,
    Submitted,
    Troubled,
    Unanswered,
)
from labwright.compute.slurm.submit import runs_of_array
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import epoch_seconds, rfc3339, seconds_apart
from labwright.domain.errors import NotFound, StorageFailed
from labwright.domain.ids import ARRAY, RUN, is_id
from labwright.domain.run import ACTIVE, Run, RunStatus
from labwright.files import modified_at
from labwright.paths import ProjectPaths
from labwright.store import runs
from labwright.store.database import Transaction

log = logging.getLogger(__name__)

_ACTOR = str(SYSTEM)
_HEARTBEAT_PATIENCE_SECONDS = 30.0
_LEFTOVER_SECONDS = 20.0


class SlurmReports:
    def __init__(self, lab: Lab, update: Callable[[str], Run | None]) -> None:
        self._lab = lab
        self._endings = SlurmEndings(lab, update)
        self._stuck = SlurmStuck(lab)
        self._recalled: dict[str, JobRow | None] = {}  # what the accounting knows about runs that squeue has forgotten
        self._asked: set[str] = set()  # runs that were looked up in the accounting
        self._controller_start: float | None = None
        self._left_since: dict[str, float] = {}  # runs that have ended, and whose job has not
        self._rows = RunRows(lab.paths)

    def apply(self) -> None:
        for report in self._lab.slurm.reports():
            self._apply(report)

    def is_blocked(self) -> bool:
        """Return whether Slurm accepts nothing now, so that starting runs is useless."""
        return bool(self._lab.slurm_silence)

    def _apply(self, report: SlurmReport) -> None:
        if isinstance(report, Submitted):
            self._submitted(report)
        elif isinstance(report, NotSubmitted):
            self._not_submitted(report)
        elif isinstance(report, Cancelled):
            self._cancelled(report.run_id)
        elif isinstance(report, StopDelayed):
            self._delayed(report)
        elif isinstance(report, Troubled):
            self._troubled(report)
        elif isinstance(report, Recalled):
            self._recalled.update(report.rows)
            self._controller_start = report.controller_start or self._controller_start
        elif isinstance(report, JobListing):
            self._apply_listing(report)
        else:
            self._unanswered(report)

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
        reason = f"Slurm does not accept it now: {report.message} Trying again."
        if run.stop_requested and not report.in_doubt:
            end_run(tx, run, RunStatus.STOPPED, reason="stopped before it began")
        elif report.for_good:
            end_run(tx, run, RunStatus.FAILED, reason="slurm_refused", error=report.message)
        elif report.in_doubt:  # the next squeue listing shows whether Slurm has it
            runs.change(tx, run, run.evolve(status_reason=reason), _ACTOR)
        else:
            runs.change(tx, run, run.move(RunStatus.QUEUED, status_reason=reason), _ACTOR)

    def _cancelled(self, run_id: str) -> None:
        """Mark as stopped: the run never started, or its sidecar finds the stop file first."""
        with self._lab.db.transaction() as tx:
            run = runs.get(tx.connection, run_id)
            if run.is_active and not self._has_started(run):
                end_run(tx, run, RunStatus.STOPPED, reason="stopped before it began")

    def _delayed(self, report: StopDelayed) -> None:
        run = runs.get(self._lab.db.reader(), report.run_id)
        if run.is_active:
            self._set_reason(run, report.message)

    def _troubled(self, report: Troubled) -> None:
        for run_id in report.run_ids:
            run = runs.get(self._lab.db.reader(), run_id)
            if run.is_active:
                self._set_reason(run, f"{report.message} Trying again.")

    def _unanswered(self, report: Unanswered) -> None:
        """Without Slurm, trust the exit files, and show why pending runs wait."""
        for run in self._active():
            facts = self._endings.exit_of(run)
            if facts is not None and facts["reason"] != "terminated":
                self._endings.by_file(run, facts)
            elif not self._has_started(run):
                self._set_reason(run, f"Slurm does not answer: {report.message}")

    def _apply_listing(self, seen: JobListing) -> None:
        active = self._active()
        jobs = self._rows.by_run(seen.rows, active)
        self._forget_recalled({run.id for run in active})
        self._report_stuck(active, jobs)
        for run in active:
            if not self._lab.slurm.was_sent_after(run.id, seen.asked_at):
                self._apply_row(run, jobs.get(run.id), seen)
        self._cancel_leftovers(jobs, {run.id for run in active})

    def _report_stuck(self, active: list[Run], jobs: dict[str, RunJob]) -> None:
        """Must run before the reasons are stored: a new reason means that the job was not stuck before."""
        waiting = [(run, jobs[run.id]) for run in active if run.status is RunStatus.LAUNCHING and run.id in jobs]
        stuck = {
            run.id: StuckJob(run=run, job_id=job.job_id, reason=job.row.reason)
            for run, job in waiting
            if job.row.is_stuck
        }
        changed = {run.id for run, job in waiting if run.status_reason != job.row.pending_message}
        for run, _ in waiting:
            if run.id in changed - stuck.keys() and run.status_reason.startswith(PENDING_MESSAGE):
                self._stuck.released(run)
        self._stuck.tell(stuck, changed & stuck.keys())

    def _cancel_leftovers(self, jobs: dict[str, RunJob], active: set[str]) -> None:
        """Cancel jobs of ended runs: a controller that crashed comes back with a state that is some seconds old."""
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
            return  # of another project
        if run.is_terminal:
            log.warning("%s has ended (%s), but Slurm still has its job %s", run_id, run.status, job_id)
            self._lab.slurm.cancel(job_id)

    def _active(self) -> list[Run]:
        return [run for run in runs.with_status(self._lab.db.reader(), *ACTIVE) if run.is_on_slurm]

    def _apply_row(self, run: Run, job: RunJob | None, seen: JobListing) -> None:
        if job is None:
            self._not_listed(run, seen)
            return
        if job.row.phase is not Phase.ENDED:
            self._endings.still_runs(run.id)
        if job.row.phase is Phase.PENDING:
            self._pending(run, job, seen)
        elif job.row.phase is Phase.ENDED:
            self._job_ended(run, job.row)
        elif not self._has_started(run):
            self._set_reason(run, f"Slurm: starting on {job.row.nodes}", job.job_id)
        elif job.row.state == "SUSPENDED":
            self._set_reason(run, "Slurm: suspended", job.job_id)

    def _pending(self, run: Run, job: RunJob, seen: JobListing) -> None:
        if seen.had_started.get(run.id) == run.attempt and run.status is RunStatus.RUNNING:
            with self._lab.db.transaction() as tx:
                fresh = runs.get(tx.connection, run.id)
                reason = f"requeued by Slurm; {job.row.pending_message}"
                begin_attempt(tx, fresh, run.attempt + 1, reason, until=self._last_at_work(run, seen))
        elif run.status is RunStatus.LAUNCHING:
            self._set_reason(run, job.row.pending_message, job.job_id)

    def _not_listed(self, run: Run, seen: JobListing) -> None:
        """A run without a job was not submitted. A job that is no longer listed has ended, unless its sidecar lives."""
        sent_since = run.launched_at is not None and run.launched_at > rfc3339(seen.asked_at)
        if sent_since or self._is_beating(run):
            return
        if not self._has_started(run) and run.slurm_job_id is None:
            self._send_again(run)
        elif others := self._rows.array_without(run, seen.rows):
            self._endings.by_row(run, replace(others, state=CANCELLED))
        elif run.id in self._recalled:
            self._end_by_accounting(run, self._recalled[run.id])
        elif run.id not in self._asked:
            self._asked.add(run.id)
            self._lab.slurm.recall(run)

    def _end_by_accounting(self, run: Run, row: JobRow | None) -> None:
        if row is not None:
            self._endings.by_row(run, row)
            return
        if self._was_forgotten(run):
            self._asked.discard(run.id)
            del self._recalled[run.id]
            self._send_again(run)
            return
        message = f"Slurm knows nothing of job {run.slurm_job_id} any more."
        self._endings.by_slurm(run, JobEnding(status=RunStatus.LOST, reason="sidecar_lost", message=message))

    def _was_forgotten(self, run: Run) -> bool:
        """Return whether a killed controller forgot the job, as it does with those of its last seconds.

        A job that did not start can be submitted again: if Slurm starts both, the claim lets only one live.
        """
        if self._has_started(run) or self._controller_start is None or run.launched_at is None:
            return False
        return epoch_seconds(run.launched_at) < self._controller_start + 1  # it has whole seconds

    def _forget_recalled(self, active: set[str]) -> None:
        self._asked &= active
        self._recalled = {run_id: row for run_id, row in self._recalled.items() if run_id in active}

    def _send_again(self, run: Run) -> None:
        if run.stop_requested:
            self._cancelled(run.id)
            return
        try:
            if launch := make_ready(self._lab, run):
                self._lab.slurm.launch([launch])
        except (OSError, StorageFailed) as error:
            log.warning("%s cannot be submitted to Slurm again yet: %s", run.id, error)

    def _job_ended(self, run: Run, row: JobRow) -> None:
        is_alive = row.state == "NODE_FAIL" and self._is_beating(run)  # slurmd died, and the job did not
        if not is_alive:
            self._endings.by_row(run, row)

    def _has_started(self, run: Run) -> bool:
        return os.path.exists(self._lab.paths.run(run.id).claim(run.attempt))

    def _is_beating(self, run: Run) -> bool:
        beat = modified_at(self._lab.paths.run(run.id).heartbeat)
        return beat is not None and seconds_apart(beat) < _HEARTBEAT_PATIENCE_SECONDS

    def _last_at_work(self, run: Run, seen: JobListing) -> float:
        """Return when the previous attempt last showed life: it may have been pending for hours since."""
        beat = modified_at(self._lab.paths.run(run.id).heartbeat)
        return seen.asked_at if beat is None else min(beat, seen.asked_at)

    def _set_reason(self, run: Run, reason: str, job_id: str | None = None) -> None:
        facts = {"status_reason": reason, "slurm_job_id": job_id or run.slurm_job_id}
        if run.status_reason == reason and run.slurm_job_id == facts["slurm_job_id"]:
            return
        with self._lab.db.transaction() as tx:
            fresh = runs.get(tx.connection, run.id)
            if fresh.status is run.status:
                runs.change(tx, fresh, fresh.evolve(**facts), _ACTOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """The squeue row of one run, and its job id in the form that scancel takes."""

    row: JobRow
    job_id: str


class RunRows:
    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._arrays: dict[str, list[str] | None] = {}  # array -> its runs

    def by_run(self, rows: tuple[JobRow, ...], active: list[Run]) -> dict[str, RunJob]:
        """Return the job of each run. If a run was submitted twice, the job that has not ended counts."""
        by_job = {run.slurm_job_id: run.id for run in active if run.slurm_job_id}
        found: dict[str, RunJob] = {}
        for row in rows:
            for run_id, task in self._runs_of(row) or _by_number(row, by_job):
                known = found.get(run_id)
                if known is None or known.row.phase is Phase.ENDED:
                    found[run_id] = RunJob(row=row, job_id=row.id_of(task))
        return found

    def _runs_of(self, row: JobRow) -> list[tuple[str, int | None]]:
        if row.tasks is None:
            return [(row.name, None)] if is_id(row.name, RUN) else []
        if not row.name.startswith(f"{ARRAY}-"):
            return []
        if row.name not in self._arrays:
            known = runs_of_array(self._paths, row.name)
            self._arrays[row.name] = None if known is None else list(known)
        members = self._arrays[row.name] or []
        return [(members[task], task) for task in row.tasks if task < len(members)]

    def array_without(self, run: Run, rows: tuple[JobRow, ...]) -> JobRow | None:
        """Return another row of the run's array if the run's own task is missing without a trace.

        Slurm forgets a pending task that somebody cancels. A task that was started leaves a log.
        """
        array, _, task = (run.slurm_job_id or "").partition("_")
        for row in rows:
            if task and row.job_id == array and (run.id, int(task)) in self._runs_of(replace(row, tasks=(int(task),))):
                return None if os.path.exists(self._paths.array(row.name).log(task)) else row
        return None


def _by_number(row: JobRow, by_job: dict[str, str]) -> list[tuple[str, int | None]]:
    """Match a renamed job by its number. Names come first, because numbers start again from 1 at some time."""
    if row.name.startswith(f"{ARRAY}-"):
        return []  # of another project
    numbers = ((row.id_of(task), task) for task in row.tasks or (None,))
    return [(by_job[number], task) for number, task in numbers if number in by_job]
