"""End jobs: those that wait at once, those that run by their sidecar and, where that does not help, by Slurm."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from labwright.compute.slurm.commands import IDS_AT_ONCE, TRY_AGAIN_SECONDS, SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.job_book import JobBook
from labwright.compute.slurm.job_lists import gathered
from labwright.compute.slurm.outcomes import Cancelled, Outcome
from labwright.domain.run import Run
from labwright.paths import ProjectPaths

log = logging.getLogger(__name__)
_ON_ITS_WAY_SECONDS = 0.1
_HARD_AFTER_SECONDS = 5.0  # beyond the grace that the sidecar gives the job


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    run: Run
    hard: bool = False
    not_before: float = 0.0


class Cancelling:
    def __init__(
        self,
        commands: SlurmCommands,
        paths: ProjectPaths,
        book: JobBook,
        tell: Callable[[Outcome], None],
        grace_seconds: float,
    ) -> None:
        self._commands = commands
        self._paths = paths
        self._book = book
        self._tell = tell
        self._grace_seconds = grace_seconds

    def carry_out(self, orders: list[Cancel]) -> list[Cancel]:
        """Answers what is left to do later."""
        pending: list[Run] = []
        running: list[Cancel] = []
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

    def _cancel_pending(self, runs: list[Run]) -> list[Cancel]:
        later: list[Cancel] = []
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

    def _cancel_or_later(self, runs: list[Run], arguments: list[str]) -> list[Cancel]:
        try:
            self._commands.call("scancel", *arguments)
        except (SlurmSilent, SlurmRefused):
            return _later(runs, TRY_AGAIN_SECONDS)
        for run in runs:
            self._tell(Cancelled(run_id=run.id))
        return []

    def _cancel_running(self, order: Cancel) -> list[Cancel]:
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


def _later(runs: list[Run], seconds: float, *, hard: bool = False) -> list[Cancel]:
    return [Cancel(run=run, hard=hard, not_before=time.monotonic() + seconds) for run in runs]


def _by_name(run: Run) -> list[str]:
    return [f"--name={run.id}", f"--user={os.getuid()}"]
