"""Orders about jobs that Slurm already has: cancel, hold, release, and look up in the accounting."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from labwright.compute.slurm.commands import IDS_AT_ONCE, TRY_AGAIN_SECONDS, SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.job_book import JobBook, join_tasks
from labwright.compute.slurm.jobs import (
    Cancelled,
    JobRow,
    OrderOutcome,
    Phase,
    Recalled,
    held_arguments,
    read_held,
    read_sacct,
    sacct_arguments,
)
from labwright.compute.slurm.probe import DialectProbe, controller_start
from labwright.compute.slurm.submit import runs_of_array
from labwright.domain.run import Run
from labwright.files import write_json
from labwright.paths import ProjectPaths

log = logging.getLogger(__name__)

_BEING_SENT_SECONDS = 0.1  # try again after this, while sbatch has not returned
_HARD_AFTER_SECONDS = 5.0  # after the grace period that the sidecar gives the job


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOrder:
    run: Run
    hard: bool = False
    not_before: float = 0.0


class Cancelling:
    """Cancels pending jobs at once. Running jobs are ended by their sidecar and, if that does not help, by Slurm."""

    def __init__(
        self,
        commands: SlurmCommands,
        paths: ProjectPaths,
        book: JobBook,
        report: Callable[[OrderOutcome], None],
        grace_seconds: float,
    ) -> None:
        self._commands = commands
        self._paths = paths
        self._book = book
        self._report = report
        self._grace_seconds = grace_seconds

    def carry_out(self, orders: list[CancelOrder]) -> list[CancelOrder]:
        """Return the orders that have to be retried later."""
        pending: list[Run] = []
        running: list[CancelOrder] = []
        for order in orders:
            if order.hard or self._book.has_started(order.run):
                running.append(order)
            else:
                pending.append(order.run)
        later = self._cancel_pending(pending)
        for order in running:
            later += self._cancel_running(order)
        return later

    def cancel_unneeded(self, job_ids: list[str]) -> None:
        for first in range(0, len(job_ids), IDS_AT_ONCE):
            try:
                self._commands.call("scancel", *join_tasks(job_ids[first : first + IDS_AT_ONCE]))
            except (SlurmSilent, SlurmRefused) as error:
                log.warning("Jobs that no run needs could not be cancelled: %s", error)

    def _cancel_pending(self, runs: list[Run]) -> list[CancelOrder]:
        later: list[CancelOrder] = []
        known: list[tuple[Run, str]] = []
        for run in runs:
            if self._book.is_being_sent(run.id):
                later += _later([run], _BEING_SENT_SECONDS)
            elif job_id := self._book.id_of(run):
                known.append((run, job_id))
            else:
                later += self._cancel_or_later([run], _by_name(run))
        for first in range(0, len(known), IDS_AT_ONCE):
            piece = known[first : first + IDS_AT_ONCE]
            later += self._cancel_or_later([run for run, _ in piece], join_tasks(job_id for _, job_id in piece))
        return later

    def _cancel_or_later(self, runs: list[Run], arguments: list[str]) -> list[CancelOrder]:
        try:
            self._commands.call("scancel", *arguments)
        except (SlurmSilent, SlurmRefused):
            return _later(runs, TRY_AGAIN_SECONDS)
        for run in runs:
            self._report(Cancelled(run_id=run.id))
        return []

    def _cancel_running(self, order: CancelOrder) -> list[CancelOrder]:
        run = order.run
        if os.path.exists(self._paths.run(run.id).exit):
            return []
        how = [] if order.hard else ["--batch", "--signal=TERM"]  # in case the sidecar misses the stop file
        job_id = self._book.id_of(run)
        try:
            self._commands.call("scancel", *how, *([job_id] if job_id else _by_name(run)))
        except (SlurmSilent, SlurmRefused):
            if order.hard:
                return _later([run], TRY_AGAIN_SECONDS, hard=True)
            # A suspended job takes no signal, so scancel fails. The hard order below ends it.
        return [] if order.hard else _later([run], self._grace_seconds + _HARD_AFTER_SECONDS, hard=True)


def _later(runs: list[Run], seconds: float, *, hard: bool = False) -> list[CancelOrder]:
    return [CancelOrder(run=run, hard=hard, not_before=time.monotonic() + seconds) for run in runs]


def _by_name(run: Run) -> list[str]:
    return [f"--name={run.id}", f"--user={os.getuid()}"]


HOLD = "uhold"  # hold as the user, even as root, so that the owner of the job may release it
RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOrder:
    verb: str  # HOLD or RELEASE
    run: Run
    not_before: float = 0.0


class Holding:
    """Holds and releases pending jobs. Releases only holds of our own."""

    def __init__(self, commands: SlurmCommands, paths: ProjectPaths, book: JobBook) -> None:
        self._commands = commands
        self._paths = paths
        self._book = book

    def carry_out(self, orders: list[HoldOrder]) -> list[HoldOrder]:
        """Return the orders that have to be retried later."""
        return [*self._give(HOLD, self._hold, orders), *self._give(RELEASE, self._release, orders)]

    def _give(self, verb: str, give: Callable[[dict[str, Run]], None], orders: list[HoldOrder]) -> list[HoldOrder]:
        runs = [order.run for order in orders if order.verb == verb and not self._book.has_started(order.run)]
        jobs = {job_id: run for run in runs if (job_id := self._book.id_of(run))}
        try:
            if jobs:
                give(jobs)
        except SlurmSilent:
            later = time.monotonic() + TRY_AGAIN_SECONDS
            return [HoldOrder(verb=verb, run=run, not_before=later) for run in runs]
        return []

    def _hold(self, jobs: dict[str, Run]) -> None:
        """Hold jobs that are not held yet. A file marks each hold as ours before Slurm gets the order."""
        held = read_held(self._commands.call(*held_arguments(os.getuid())))
        ours = {job_id: run for job_id, run in jobs.items() if job_id not in held}
        for run in ours.values():
            # No sync: it takes time, and jobs start meanwhile.
            write_json(self._paths.run(run.id).held, {"at": time.time()}, sync=False)
        self._call_scontrol(HOLD, list(ours))

    def _release(self, jobs: dict[str, Run]) -> None:
        ours = {job_id: run for job_id, run in jobs.items() if os.path.exists(self._paths.run(run.id).held)}
        self._call_scontrol(RELEASE, list(ours))

    def _call_scontrol(self, verb: str, job_ids: list[str]) -> None:
        for first in range(0, len(job_ids), IDS_AT_ONCE):
            try:
                self._commands.call("scontrol", verb, ",".join(join_tasks(job_ids[first : first + IDS_AT_ONCE])))
            except SlurmRefused as error:  # a job has started or ended meanwhile; the order applied to the others
                log.info("scontrol %s: %s", verb, error.message)


class Recalling:
    """Looks up jobs in the accounting that squeue no longer lists. Many clusters have no accounting."""

    def __init__(
        self,
        commands: SlurmCommands,
        paths: ProjectPaths,
        dialect: DialectProbe,
        book: JobBook,
        report: Callable[[OrderOutcome], None],
    ) -> None:
        self._commands = commands
        self._paths = paths
        self._dialect = dialect
        self._book = book
        self._report = report

    def carry_out(self, runs: list[Run]) -> None:
        for first in range(0, len(runs), IDS_AT_ONCE):
            piece = runs[first : first + IDS_AT_ONCE]
            rows = self._look_up(piece) if self._dialect.get().keeps_accounts else _no_rows(piece)
            started = controller_start(self._commands) if None in rows.values() else None
            self._report(Recalled(rows=rows, controller_start=started))

    def _look_up(self, runs: list[Run]) -> dict[str, JobRow | None]:
        jobs = {job_id: run for run in runs if (job_id := self._book.id_of(run))}
        try:
            rows = read_sacct(self._commands.call(*sacct_arguments(jobs)))
        except (SlurmSilent, SlurmRefused) as error:
            log.warning("sacct failed for %d job(s): %s", len(jobs), error)
            return _no_rows(runs)
        except Exception:  # without a result, the run would stay active for ever
            log.exception("The output of sacct could not be parsed")
            return _no_rows(runs)
        by_run = _no_rows(runs)
        for row in rows:
            for task in row.tasks or (None,):
                run = jobs.get(row.id_of(task))
                if run is not None and row.phase is Phase.ENDED and self._belongs_to(run, row, task):
                    by_run[run.id] = row
        return by_run

    def _belongs_to(self, run: Run, row: JobRow, task: int | None) -> bool:
        """Compare names, because Slurm reuses job numbers."""
        if task is None:
            return row.name == run.id
        members = runs_of_array(self._paths, row.name) or ()
        return task < len(members) and members[task] == run.id


def _no_rows(runs: list[Run]) -> dict[str, JobRow | None]:
    return dict.fromkeys(run.id for run in runs)
