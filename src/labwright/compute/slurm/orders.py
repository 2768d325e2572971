"""End jobs: those that wait at once, those that run by their sidecar and, where that does not help, by Slurm."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from labwright.compute.slurm.commands import IDS_AT_ONCE, TRY_AGAIN_SECONDS, SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.job_book import JobBook, gathered
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

_ON_ITS_WAY_SECONDS = 0.1
_HARD_AFTER_SECONDS = 5.0  # beyond the grace that the sidecar gives the job


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOrder:
    run: Run
    hard: bool = False
    not_before: float = 0.0


class Cancelling:
    def __init__(
        self,
        commands: SlurmCommands,
        paths: ProjectPaths,
        book: JobBook,
        tell: Callable[[OrderOutcome], None],
        grace_seconds: float,
    ) -> None:
        self._commands = commands
        self._paths = paths
        self._book = book
        self._tell = tell
        self._grace_seconds = grace_seconds

    def carry_out(self, orders: list[CancelOrder]) -> list[CancelOrder]:
        """Answers what is left to do later."""
        pending: list[Run] = []
        running: list[CancelOrder] = []
        for order in orders:
            if order.hard or self._book.has_begun(order.run):
                running.append(order)
            else:
                pending.append(order.run)
        later = self._cancel_pending(pending)
        for order in running:
            later += self._cancel_running(order)
        return later

    def cancel_unneeded(self, job_ids: list[str]) -> None:
        """Jobs that no run needs any more."""
        for first in range(0, len(job_ids), IDS_AT_ONCE):
            try:
                self._commands.call("scancel", *gathered(job_ids[first : first + IDS_AT_ONCE]))
            except (SlurmSilent, SlurmRefused) as error:
                log.warning("jobs that no run needs could not be cancelled: %s", error)

    def _cancel_pending(self, runs: list[Run]) -> list[CancelOrder]:
        later: list[CancelOrder] = []
        known: list[tuple[Run, str]] = []
        for run in runs:
            if self._book.is_on_its_way(run.id):
                later += _later([run], _ON_ITS_WAY_SECONDS)
            elif job_id := self._book.id_of(run):
                known.append((run, job_id))
            else:
                later += self._cancel_or_later([run], _by_name(run))
        for first in range(0, len(known), IDS_AT_ONCE):
            piece = known[first : first + IDS_AT_ONCE]
            later += self._cancel_or_later([run for run, _ in piece], gathered(job_id for _, job_id in piece))
        return later

    def _cancel_or_later(self, runs: list[Run], arguments: list[str]) -> list[CancelOrder]:
        try:
            self._commands.call("scancel", *arguments)
        except (SlurmSilent, SlurmRefused):
            return _later(runs, TRY_AGAIN_SECONDS)
        for run in runs:
            self._tell(Cancelled(run_id=run.id))
        return []

    def _cancel_running(self, order: CancelOrder) -> list[CancelOrder]:
        run = order.run
        if os.path.exists(self._paths.run(run.id).exit):
            return []
        how = [] if order.hard else ["--batch", "--signal=TERM"]  # to the sidecar alone, should it not see the file
        job_id = self._book.id_of(run)
        try:
            self._commands.call("scancel", *how, *([job_id] if job_id else _by_name(run)))
        except (SlurmSilent, SlurmRefused):
            if order.hard:
                return _later([run], TRY_AGAIN_SECONDS, hard=True)
            # The signal is only a help: a suspended job takes none, and scancel waits in vain; but Slurm can end it.
        return [] if order.hard else _later([run], self._grace_seconds + _HARD_AFTER_SECONDS, hard=True)


def _later(runs: list[Run], seconds: float, *, hard: bool = False) -> list[CancelOrder]:
    return [CancelOrder(run=run, hard=hard, not_before=time.monotonic() + seconds) for run in runs]


def _by_name(run: Run) -> list[str]:
    return [f"--name={run.id}", f"--user={os.getuid()}"]


HOLD = "uhold"  # as the user, also where that is root: whoever owns a job may release it
RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOrder:
    verb: str  # HOLD or RELEASE
    run: Run
    not_before: float = 0.0


class Holding:
    def __init__(self, commands: SlurmCommands, paths: ProjectPaths, book: JobBook) -> None:
        self._commands = commands
        self._paths = paths
        self._book = book

    def carry_out(self, orders: list[HoldOrder]) -> list[HoldOrder]:
        """Answers what is left to do later."""
        return [*self._keep(HOLD, self._hold, orders), *self._keep(RELEASE, self._release, orders)]

    def _keep(self, verb: str, keep: Callable[[dict[str, Run]], None], orders: list[HoldOrder]) -> list[HoldOrder]:
        runs = [order.run for order in orders if order.verb == verb and not self._book.has_begun(order.run)]
        jobs = {job_id: run for run in runs if (job_id := self._book.id_of(run))}
        try:
            if jobs:
                keep(jobs)
        except SlurmSilent:
            later = time.monotonic() + TRY_AGAIN_SECONDS
            return [HoldOrder(verb=verb, run=run, not_before=later) for run in runs]
        return []

    def _hold(self, jobs: dict[str, Run]) -> None:
        """Which holds are ours lies on disk before Slurm hears of them; what is held already is somebody else's."""
        held = read_held(self._commands.call(*held_arguments(os.getuid())))
        ours = {job_id: run for job_id, run in jobs.items() if job_id not in held}
        for run in ours.values():
            write_json(self._paths.run(run.id).held, {"at": time.time()}, sync=False)  # while these wait, jobs start
        self._order(HOLD, list(ours))

    def _release(self, jobs: dict[str, Run]) -> None:
        ours = {job_id: run for job_id, run in jobs.items() if os.path.exists(self._paths.run(run.id).held)}
        self._order(RELEASE, list(ours))

    def _order(self, verb: str, job_ids: list[str]) -> None:
        for first in range(0, len(job_ids), IDS_AT_ONCE):
            try:
                self._commands.call("scontrol", verb, ",".join(gathered(job_ids[first : first + IDS_AT_ONCE])))
            except SlurmRefused as error:  # one of them has begun or ended meanwhile; the others were heeded
                log.info("scontrol %s: %s", verb, error.message)


class Recalling:
    def __init__(
        self,
        commands: SlurmCommands,
        paths: ProjectPaths,
        dialect: DialectProbe,
        book: JobBook,
        tell: Callable[[OrderOutcome], None],
    ) -> None:
        self._commands = commands
        self._paths = paths
        self._dialect = dialect
        self._book = book
        self._tell = tell

    def carry_out(self, runs: list[Run]) -> None:
        """One question for all of them."""
        for first in range(0, len(runs), IDS_AT_ONCE):
            piece = runs[first : first + IDS_AT_ONCE]
            rows = self._ask(piece) if self._dialect.ask().keeps_accounts else _nothing(piece)
            started = controller_start(self._commands) if None in rows.values() else None
            self._tell(Recalled(rows=rows, controller_start=started))

    def _ask(self, runs: list[Run]) -> dict[str, JobRow | None]:
        jobs = {job_id: run for run in runs if (job_id := self._book.id_of(run))}
        try:
            rows = read_sacct(self._commands.call(*sacct_arguments(jobs)))
        except (SlurmSilent, SlurmRefused) as error:
            log.warning("the accounting does not say what became of %d job(s): %s", len(jobs), error)
            return _nothing(runs)
        except Exception:  # a run whose end nobody tells would be at work for ever
            log.exception("what the accounting said could not be understood")
            return _nothing(runs)
        found = _nothing(runs)
        for row in rows:
            for task in row.tasks or (None,):
                run = jobs.get(row.id_of(task))
                if run is not None and row.phase is Phase.ENDED and self._is_of(run, row, task):
                    found[run.id] = row
        return found

    def _is_of(self, run: Run, row: JobRow, task: int | None) -> bool:
        """Numbers of jobs begin again from 1 at some time; names do not."""
        if task is None:
            return row.name == run.id
        members = runs_of_array(self._paths, row.name) or ()
        return task < len(members) and members[task] == run.id


def _nothing(runs: list[Run]) -> dict[str, JobRow | None]:
    return dict.fromkeys(run.id for run in runs)
