"""Submit runs to Slurm: alone, or as an array if they request the same. Report the outcome for each run."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labwright.compute.slurm.commands import Said, SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.job_book import JobBook, OrderFaults
from labwright.compute.slurm.jobs import Cancelled, NotSubmitted, OrderOutcome, Submitted
from labwright.compute.slurm.probe import Dialect, DialectProbe
from labwright.compute.slurm.resources import SlurmDefaults, sbatch_options
from labwright.domain.ids import ARRAY, new_id
from labwright.domain.run import Run
from labwright.files import read_json, write_json
from labwright.paths import ArrayPaths, ProjectPaths, RunPaths

_FULL = re.compile(r"Max(?:Submit)?Jobs?\w*Limit|MaxSubmit|job submit limit", re.IGNORECASE)


class Submission:
    def __init__(
        self,
        commands: SlurmCommands,
        paths: ProjectPaths,
        defaults: SlurmDefaults,
        dialect: DialectProbe,
        book: JobBook,
        faults: OrderFaults,
        report: Callable[[OrderOutcome], None],
    ) -> None:
        self._commands = commands
        self._paths = paths
        self._defaults = defaults
        self._dialect = dialect
        self._book = book
        self._faults = faults
        self._report = report

    def send_all(self, runs: list[Run]) -> None:
        stopped = [run for run in runs if os.path.exists(self._paths.run(run.id).stop)]
        for run in stopped:
            self._book.settle([run.id])
            self._report(Cancelled(run_id=run.id))
        left = [run for run in runs if run not in stopped]
        if not left:
            return
        dialect = self._dialect.ask()
        try:
            batches = list(batches_of(left, self._defaults, dialect.max_array_size))
        except Exception as error:  # noqa: BLE001 - the request of one run is invalid; the others are submitted
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
        message = self._faults.note(runs, error)
        self._report(NotSubmitted(run_ids=(runs[0].id,), message=message, for_good=True))

    def _send(self, batch: JobBatch, dialect: Dialect) -> None:
        """Submit a batch. If the queue has room for some runs only, submit the first ones; the others are retried."""
        outcome = self._outcome(batch, dialect)
        if isinstance(outcome, NotSubmitted) and _is_full(outcome) and len(batch.runs) > 1:
            first, rest = halves(batch)
            self._settle(rest, replace(outcome, run_ids=tuple(run.id for run in rest.runs)))
            self._send(first, dialect)
        else:
            self._settle(batch, outcome)

    def _settle(self, batch: JobBatch, outcome: Submitted | NotSubmitted) -> None:
        self._book.settle([run.id for run in batch.runs], outcome.job_ids if isinstance(outcome, Submitted) else {})
        self._report(outcome)

    def _outcome(self, batch: JobBatch, dialect: Dialect) -> Submitted | NotSubmitted:
        run_ids = tuple(run.id for run in batch.runs)
        try:
            job_ids = send(batch, self._commands, self._paths, self._defaults, dialect)
        except SlurmRefused as error:
            return NotSubmitted(run_ids=run_ids, message=error.message, for_good=True)
        except SlurmSilent as error:
            return NotSubmitted(run_ids=run_ids, message=error.message, in_doubt=error.in_doubt, is_silent=True)
        except OSError as error:  # the array's file could not be written
            return NotSubmitted(run_ids=run_ids, message=str(error))
        except Exception as error:  # noqa: BLE001 - the next squeue listing shows whether Slurm has the job
            return NotSubmitted(run_ids=run_ids, message=self._faults.note(batch.runs, error), in_doubt=True)
        self._faults.over(run_ids)
        return Submitted(job_ids=job_ids)


def _is_full(outcome: NotSubmitted) -> bool:
    """Return whether the user's limit of queued jobs is reached. Each task of an array counts."""
    return outcome.is_silent and not outcome.in_doubt and _FULL.search(outcome.message) is not None


SIDECAR = Path(__file__).parents[2] / "sidecar" / "__main__.py"
_SBATCH_TIMEOUT_SECONDS = 30.0
_REMIND_SRUN = '[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"'
_JOB = re.compile(r"(\d+)(?:;.*)?")  # followed by the cluster if there are several


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBatch:
    """What one sbatch call submits. Its name leads back to the runs even if the server died before it got the id."""

    name: str
    runs: tuple[Run, ...]
    options: tuple[str, ...]

    @property
    def is_array(self) -> bool:
        return self.name.startswith(f"{ARRAY}-")

    def job_ids(self, job: str) -> dict[str, str]:
        if not self.is_array:
            return {self.runs[0].id: job}
        return {run.id: f"{job}_{task}" for task, run in enumerate(self.runs)}


def batches_of(runs: Iterable[Run], defaults: SlurmDefaults, max_array_size: int) -> Iterator[JobBatch]:
    """Group runs with equal requests into arrays, each at most as large as Slurm allows."""
    equal: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        equal.setdefault(sbatch_options(run, defaults), []).append(run)
    for options, together in equal.items():
        for first in range(0, len(together), max_array_size):
            yield _batch(together[first : first + max_array_size], options)


def halves(batch: JobBatch) -> tuple[JobBatch, JobBatch]:
    middle = (len(batch.runs) + 1) // 2
    return _batch(batch.runs[:middle], batch.options), _batch(batch.runs[middle:], batch.options)


def _batch(runs: Sequence[Run], options: tuple[str, ...]) -> JobBatch:
    return JobBatch(name=runs[0].id if len(runs) == 1 else new_id(ARRAY), runs=tuple(runs), options=options)


def send(
    batch: JobBatch, commands: SlurmCommands, paths: ProjectPaths, defaults: SlurmDefaults, dialect: Dialect
) -> dict[str, str]:
    """Submit a batch and return the job id of each run. The list of tasks is on disk before Slurm gets the job."""
    if batch.is_array:
        array = paths.array(batch.name)
        os.makedirs(array.dir, mode=0o700, exist_ok=True)
        facts = {"run_ids": [run.id for run in batch.runs], "run_dirs": [run.run_dir for run in batch.runs]}
        write_json(array.runs, facts)
        log = ArrayPaths(_literal(array.dir)).log("%a")
        target, more = array.runs, [f"--array=0-{len(batch.runs) - 1}"]
    else:
        target = str(batch.runs[0].run_dir)
        log, more = _literal(RunPaths(target).slurm_log), []
    said = commands.ask(
        "sbatch",
        "--parsable",
        f"--job-name={batch.name}",
        f"--output={log}",
        "--open-mode=append",
        "--chdir=/",
        "--requeue",
        *more,
        *batch.options,
        stdin=_script(defaults.python or sys.executable, target, dialect),
        timeout=_SBATCH_TIMEOUT_SECONDS,
    )
    return batch.job_ids(_job_of(said) or _job_by_name(batch, commands, said))


def _job_of(said: Said) -> str | None:
    """Return the job id, which is the last line: filters of a site may print before it."""
    lines = said.out.split()
    match = _JOB.fullmatch(lines[-1]) if lines else None
    return match[1] if match else None


def _job_by_name(batch: JobBatch, commands: SlurmCommands, said: Said) -> str:
    """Look a job up in the queue if sbatch succeeded without printing an id."""
    message = f"sbatch named no job; it said: {said.words or 'nothing'}."
    try:
        listed = commands.call(
            "squeue", "-h", "-a", "-t", "all", f"--name={batch.name}", f"--user={os.getuid()}", "-o%F"
        )
    except (SlurmSilent, SlurmRefused) as error:
        raise SlurmSilent(f"{message} squeue: {error.message}", in_doubt=True) from error
    if not listed.split():
        raise SlurmRefused(message)
    return listed.split()[0]


def _literal(path: str) -> str:
    """Escape `%`, which sbatch would replace in a path."""
    return path.replace("%", "%%")


def _script(python: str, target: str, dialect: Dialect) -> str:
    """Return the batch script. The job's environment comes from the run folder; sbatch passes no secrets."""
    remind = f"{_REMIND_SRUN}\n" if dialect.srun_forgets_cpus else ""
    return f"#!/bin/sh\n{remind}exec {shlex.join([python, '-I', '-S', str(SIDECAR), 'slurm', target])}\n"


def runs_of_array(paths: ProjectPaths, array_id: str) -> Sequence[str] | None:
    """Return the run of each task, or None if the array belongs to another project."""
    try:
        found: list[str] = read_json(paths.array(array_id).runs)["run_ids"]
    except FileNotFoundError:
        return None
    return found
