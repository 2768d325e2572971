"""Ask the accounting what became of jobs that squeue has forgotten. Many clusters keep none; nothing depends on it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from labwright.compute.slurm.batch import runs_of_array
from labwright.compute.slurm.commands import IDS_AT_ONCE, SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.dialect import DialectProbe, controller_start
from labwright.compute.slurm.job_book import JobBook
from labwright.compute.slurm.outcomes import Outcome, Recalled
from labwright.compute.slurm.states import JobRow, Phase, read_sacct, sacct_arguments
from labwright.domain.run import Run
from labwright.paths import ProjectPaths

log = logging.getLogger(__name__)


class Recalling:
    def __init__(
        self,
        commands: SlurmCommands,
        paths: ProjectPaths,
        dialect: DialectProbe,
        book: JobBook,
        tell: Callable[[Outcome], None],
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
