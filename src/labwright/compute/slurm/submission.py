"""Hand runs over to Slurm, and tell what came of it for each of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace

from labwright.compute.slurm.batch import Batch, batches_of, halves, send
from labwright.compute.slurm.commands import SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.dialect import Dialect, DialectProbe
from labwright.compute.slurm.faults import Faults
from labwright.compute.slurm.job_book import JobBook
from labwright.compute.slurm.outcomes import Cancelled, NotSubmitted, Outcome, Submitted
from labwright.compute.slurm.resources import SlurmDefaults
from labwright.domain.run import Run
from labwright.paths import ProjectPaths

_FULL = re.compile(r"Max(?:Submit)?Jobs?\w*Limit|MaxSubmit|job submit limit", re.IGNORECASE)


class Submission:
    def __init__(
        self,
        commands: SlurmCommands,
        paths: ProjectPaths,
        defaults: SlurmDefaults,
        dialect: DialectProbe,
        book: JobBook,
        faults: Faults,
        tell: Callable[[Outcome], None],
    ) -> None:
        self._commands = commands
        self._paths = paths
        self._defaults = defaults
        self._dialect = dialect
        self._book = book
        self._faults = faults
        self._tell = tell

    def send_all(self, runs: list[Run]) -> None:
        stopped = [run for run in runs if os.path.exists(self._paths.run(run.id).stop)]
        for run in stopped:
            self._book.settle([run.id])
            self._tell(Cancelled(run_id=run.id))
        left = [run for run in runs if run not in stopped]
        if not left:
            return
        dialect = self._dialect.ask()
        try:
            batches = list(batches_of(left, self._defaults, dialect.max_array_size))
        except Exception as error:  # noqa: BLE001 - what one of them asks for cannot be read; the others go on
            self._send_apart(left, error)
            return
        for batch in batches:
            self._send(batch, dialect)

    def _send_apart(self, runs: list[Run], error: Exception) -> None:
        if len(runs) > 1:
            for run in runs:
                self.send_all([run])
            return
        self._book.settle([runs[0].id])
        words = self._faults.note(runs, error)
        self._tell(NotSubmitted(run_ids=(runs[0].id,), words=words, for_good=True))

    def _send(self, batch: Batch, dialect: Dialect) -> None:
        """Where there is room for some only, the first ones go; the others come again when there is more."""
        outcome = self._outcome(batch, dialect)
        if isinstance(outcome, NotSubmitted) and _is_full(outcome) and len(batch.runs) > 1:
            first, rest = halves(batch)
            self._settle(rest, replace(outcome, run_ids=tuple(run.id for run in rest.runs)))
            self._send(first, dialect)
        else:
            self._settle(batch, outcome)

    def _settle(self, batch: Batch, outcome: Submitted | NotSubmitted) -> None:
        self._book.settle([run.id for run in batch.runs], outcome.job_ids if isinstance(outcome, Submitted) else {})
        self._tell(outcome)

    def _outcome(self, batch: Batch, dialect: Dialect) -> Submitted | NotSubmitted:
        run_ids = tuple(run.id for run in batch.runs)
        try:
            job_ids = send(batch, self._commands, self._paths, self._defaults, dialect)
        except SlurmRefused as error:
            return NotSubmitted(run_ids=run_ids, words=error.message, for_good=True)
        except SlurmSilent as error:
            return NotSubmitted(run_ids=run_ids, words=error.message, in_doubt=error.in_doubt, is_silent=True)
        except OSError as error:  # the array's file could not be written
            return NotSubmitted(run_ids=run_ids, words=str(error))
        except Exception as error:  # noqa: BLE001 - whether Slurm has it, the next answer of squeue tells
            return NotSubmitted(run_ids=run_ids, words=self._faults.note(batch.runs, error), in_doubt=True)
        self._faults.over(run_ids)
        return Submitted(job_ids=job_ids)


def _is_full(outcome: NotSubmitted) -> bool:
    """A user may have so many jobs in the queue and no more, and an array counts as all of its tasks."""
    return outcome.is_silent and not outcome.in_doubt and _FULL.search(outcome.words) is not None
