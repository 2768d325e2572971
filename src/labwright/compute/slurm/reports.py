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

log = logging.getLogger(__name__)

_ACTOR = str(SYSTEM)
_HEARTBEAT_PATIENCE_SECONDS = 30.0
_LEFTOVER_SECONDS = 20.0


class SlurmReports:
    def __init__(self, lab: Lab, update: Callable[[str], Run | None]) -> None:
        self._lab = lab
        self._endings = SlurmEndings(lab, update)
        self._stuck = SlurmStuck(lab)
        self._accounted: dict[str, JobRow | None] = {}  # accounting rows of runs that squeue no longer lists
        self._lookups: set[str] = set()  # runs that were looked up in the accounting
        self._controller_start: float | None = None
        self._left_since: dict[str, float] = {}  # ended runs whose job has not ended
        self._rows = RunRows(lab.paths)

    def apply(self) -> None:
        for report in self._lab.slurm.reports():
            if isinstance(report, Submitted):
                self._store_job_ids(report)
            elif isinstance(report, NotSubmitted):
                self._not_submitted(report)
            elif isinstance(report, Cancelled):
                self._cancelled(report.run_id)
            elif isinstance(report, StopDelayed):
                self._explain((report.run_id,), report.message)
            elif isinstance(report, Troubled):
                self._explain(report.run_ids, f"{report.message} Trying again.")
            elif isinstance(report, Recalled):
                self._accounted.update(report.rows)
                self._controller_start = report.controller_start or self._controller_start
            elif isinstance(report, JobListing):
                self._apply_listing(report)
            else:
                self._unanswered(report)

    def is_blocked(self) -> bool:
        """Return whether Slurm accepts nothing now, so that starting runs is useless."""
        return bool(self._lab.slurm_silence)

    def _store_job_ids(self, report: Submitted) -> None:
        with self._lab.db.transaction() as tx:
            for run_id, job_id in report.job_ids.items():
                run = runs.get(tx.connection, run_id)
                if run.is_active and run.slurm_job_id != job_id:
                    runs.change(tx, run, run.evolve(slurm_job_id=job_id), _ACTOR)

    def _not_submitted(self, report: NotSubmitted) -> None:
        """End runs that Slurm refused, and put the others back into the queue."""
        reason = f"Slurm does not accept it now: {report.message} Trying again."
        with self._lab.db.transaction() as tx:
            for run_id in report.run_ids:
                run = runs.get(tx.connection, run_id)
                if run.status is not RunStatus.LAUNCHING:
                    continue
                if run.stop_requested and not report.in_doubt:
                    end_run(tx, run, RunStatus.STOPPED, reason="stopped before it began")
                elif report.for_good:
                    end_run(tx, run, RunStatus.FAILED, reason="slurm_refused", error=report.message)
                elif report.in_doubt:  # the next squeue listing shows whether Slurm has the job
                    runs.change(tx, run, run.evolve(status_reason=reason), _ACTOR)
                else:
                    runs.change(tx, run, run.move(RunStatus.QUEUED, status_reason=reason), _ACTOR)

    def _cancelled(self, run_id: str) -> None:
        """Mark a run as stopped that has not started. If its sidecar starts after all, it finds the stop file."""
        with self._lab.db.transaction() as tx:
            run = runs.get(tx.connection, run_id)
            if run.is_active and not self._has_started(run):
                end_run(tx, run, RunStatus.STOPPED, reason="stopped before it began")

    def _explain(self, run_ids: tuple[str, ...], reason: str) -> None:
        for run_id in run_ids:
            run = runs.get(self._lab.db.reader(), run_id)
            if run.is_active:
                self._set_reason(run, reason)

    def _unanswered(self, report: Unanswered) -> None:
        """Without Slurm, trust the exit files, and show why pending runs wait."""
        for run in self._active():
            facts = self._endings.exit_of(run)
            if facts is not None and facts["reason"] != "terminated":
                self._endings.by_file(run, facts)
            elif not self._has_started(run):
                self._set_reason(run, f"Slurm does not answer: {report.message}")

    def _apply_listing(self, listing: JobListing) -> None:
        active = self._active()
        active_ids = {run.id for run in active}
        jobs = self._rows.by_run(listing.rows, active)
        self._lookups &= active_ids
        self._accounted = {run_id: row for run_id, row in self._accounted.items() if run_id in active_ids}
        self._report_stuck(active, jobs)
        for run in active:
            if not self._lab.slurm.was_sent_after(run.id, listing.asked_at):
                self._apply_row(run, jobs.get(run.id), listing)
        self._cancel_leftovers(jobs, active_ids)

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
        self._stuck.update(stuck, changed & stuck.keys())

    def _cancel_leftovers(self, jobs: dict[str, RunJob], active: set[str]) -> None:
        """Cancel jobs of ended runs. A controller that crashed restarts with a state that is some seconds old."""
        for run_id, job in jobs.items():
            if run_id in active or job.row.phase is Phase.ENDED or not is_id(run_id, RUN):
                self._left_since.pop(run_id, None)
                continue
            if time.monotonic() - self._left_since.setdefault(run_id, time.monotonic()) <= _LEFTOVER_SECONDS:
                continue
            self._left_since.pop(run_id)
            try:
                run = runs.get(self._lab.db.reader(), run_id)
            except NotFound:
                continue  # the run belongs to another project
            if run.is_terminal:
                log.warning("%s has ended (%s), but Slurm still has its job %s", run_id, run.status, job.job_id)
                self._lab.slurm.cancel(job.job_id)

    def _active(self) -> list[Run]:
        return [run for run in runs.with_status(self._lab.db.reader(), *ACTIVE) if run.is_on_slurm]

    def _apply_row(self, run: Run, job: RunJob | None, listing: JobListing) -> None:
        if job is None:
            self._not_listed(run, listing)
            return
        if job.row.phase is Phase.ENDED:
            if job.row.state != "NODE_FAIL" or not self._is_beating(run):  # a job can outlive its slurmd
                self._endings.by_row(run, job.row)
            return
        self._endings.still_runs(run.id)
        if job.row.phase is Phase.PENDING:
            self._pending(run, job, listing)
        elif not self._has_started(run):
            self._set_reason(run, f"Slurm: starting on {job.row.nodes}", job.job_id)
        elif job.row.state == "SUSPENDED":
            self._set_reason(run, "Slurm: suspended", job.job_id)

    def _pending(self, run: Run, job: RunJob, listing: JobListing) -> None:
        """Show why a job is pending. A job that had started was requeued: its next attempt begins."""
        if listing.had_started.get(run.id) == run.attempt and run.status is RunStatus.RUNNING:
            # The attempt ended at its last heartbeat. The job may have been pending for hours since then.
            beat = modified_at(self._lab.paths.run(run.id).heartbeat)
            until = listing.asked_at if beat is None else min(beat, listing.asked_at)
            with self._lab.db.transaction() as tx:
                fresh = runs.get(tx.connection, run.id)
                reason = f"requeued by Slurm; {job.row.pending_message}"
                begin_attempt(tx, fresh, run.attempt + 1, reason, until=until)
        elif run.status is RunStatus.LAUNCHING:
            self._set_reason(run, job.row.pending_message, job.job_id)

    def _not_listed(self, run: Run, listing: JobListing) -> None:
        """Handle an active run that squeue does not list.

        A run without a job id was not submitted. A run with one has ended, unless its sidecar lives.
        """
        sent_since = run.launched_at is not None and run.launched_at > rfc3339(listing.asked_at)
        if sent_since or self._is_beating(run):
            return
        if not self._has_started(run) and run.slurm_job_id is None:
            self._submit_again(run)
        elif sibling := self._rows.array_without(run, listing.rows):
            self._endings.by_row(run, replace(sibling, state=CANCELLED))
        elif run.id in self._accounted:
            self._end_by_accounting(run, self._accounted[run.id])
        elif run.id not in self._lookups:
            self._lookups.add(run.id)
            self._lab.slurm.recall(run)

    def _end_by_accounting(self, run: Run, row: JobRow | None) -> None:
        if row is not None:
            self._endings.by_row(run, row)
        elif self._was_forgotten(run):
            self._lookups.discard(run.id)
            del self._accounted[run.id]
            self._submit_again(run)
        else:
            message = f"Slurm knows nothing of job {run.slurm_job_id} any more."
            self._endings.by_slurm(run, JobEnding(status=RunStatus.LOST, reason="sidecar_lost", message=message))

    def _was_forgotten(self, run: Run) -> bool:
        """Return whether a killed controller forgot the job: it loses the jobs of its last seconds.

        A job that did not start can be submitted again: if Slurm starts both, the claim lets only one live.
        """
        if self._has_started(run) or self._controller_start is None or run.launched_at is None:
            return False
        return epoch_seconds(run.launched_at) < self._controller_start + 1  # the start time has whole seconds

    def _submit_again(self, run: Run) -> None:
        if run.stop_requested:
            self._cancelled(run.id)
            return
        try:
            if launch := make_ready(self._lab, run):
                self._lab.slurm.launch([launch])
        except (OSError, StorageFailed) as error:
            log.warning("%s cannot be submitted to Slurm again yet: %s", run.id, error)

    def _has_started(self, run: Run) -> bool:
        return os.path.exists(self._lab.paths.run(run.id).claim(run.attempt))

    def _is_beating(self, run: Run) -> bool:
        beat = modified_at(self._lab.paths.run(run.id).heartbeat)
        return beat is not None and seconds_apart(beat) < _HEARTBEAT_PATIENCE_SECONDS

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
        self._arrays: dict[str, list[str]] = {}  # array -> its runs

    def by_run(self, rows: tuple[JobRow, ...], active: list[Run]) -> dict[str, RunJob]:
        """Return the job of each run. If a run was submitted twice, the job that has not ended counts."""
        by_job = {run.slurm_job_id: run.id for run in active if run.slurm_job_id}
        jobs: dict[str, RunJob] = {}
        for row in rows:
            for run_id, task in self._runs_of(row) or _by_number(row, by_job):
                known = jobs.get(run_id)
                if known is None or known.row.phase is Phase.ENDED:
                    jobs[run_id] = RunJob(row=row, job_id=row.id_of(task))
        return jobs

    def _runs_of(self, row: JobRow) -> list[tuple[str, int | None]]:
        if row.tasks is None:
            return [(row.name, None)] if is_id(row.name, RUN) else []
        if not row.name.startswith(f"{ARRAY}-"):
            return []
        if row.name not in self._arrays:
            self._arrays[row.name] = list(runs_of_array(self._paths, row.name) or ())
        members = self._arrays[row.name]
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
    """Match a renamed job by its number. Names are tried first, because Slurm reuses numbers."""
    if row.name.startswith(f"{ARRAY}-"):
        return []  # the array belongs to another project
    numbers = ((row.id_of(task), task) for task in row.tasks or (None,))
    return [(by_job[number], task) for number, task in numbers if number in by_job]
