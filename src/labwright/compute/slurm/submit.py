"""Submit runs to Slurm: alone, or as an array if they request the same. Report the outcome for each run."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labwright.compute.slurm.commands import CommandOutput, SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.job_book import JobBook, OrderFaults
from labwright.compute.slurm.jobs import Cancelled, NotSubmitted, OrderOutcome, Submitted
from labwright.compute.slurm.probe import Dialect, DialectProbe
from labwright.compute.slurm.resources import SlurmDefaults, sbatch_options
from labwright.domain.ids import ARRAY, new_id
from labwright.domain.run import Run
from labwright.files import read_json, write_json
from labwright.paths import ArrayPaths, ProjectPaths, RunPaths


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
        dialect = self._dialect.get()
        try:
            batches = list(batches_of(left, self._defaults, dialect.max_array_size))
        except Exception as error:  # noqa: BLE001 - the request of one run is invalid; the others are submitted
            if len(left) > 1:
                for run in left:
                    self.send_all([run])
                return
            self._book.settle([left[0].id])
            message = self._faults.note(left, error)
            self._report(NotSubmitted(run_ids=(left[0].id,), message=message, for_good=True))
            return
        for batch in batches:
            self._send(batch, dialect)

    def _send(self, batch: JobBatch, dialect: Dialect) -> None:
        """Submit a batch. If the queue has room for some runs only, submit the first half; the others are retried."""
        outcome = self._outcome(batch, dialect)
        if isinstance(outcome, NotSubmitted) and outcome.is_full and len(batch.runs) > 1:
            first, second = halves(batch)
            self._settle(second, replace(outcome, run_ids=tuple(run.id for run in second.runs)))
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
        self._faults.clear(run_ids)
        return Submitted(job_ids=job_ids)


SIDECAR = Path(__file__).parents[2] / "sidecar" / "__main__.py"
_SBATCH_TIMEOUT_SECONDS = 30.0
_REMIND_SRUN = '[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"'
_JOB = re.compile(r"(\d+)(?:;.*)?")  # the cluster follows if there are several


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBatch:
    """The runs of one sbatch call. The job's name leads back to them even if the server died before it got the id."""

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
    # The job's environment comes from the run folder, because sbatch passes no secrets.
    remind = f"{_REMIND_SRUN}\n" if dialect.srun_forgets_cpus else ""
    sidecar = shlex.join([defaults.python or sys.executable, "-I", "-S", str(SIDECAR), "slurm", target])
    output = commands.run(
        "sbatch",
        "--parsable",
        f"--job-name={batch.name}",
        f"--output={log}",
        "--open-mode=append",
        "--chdir=/",
        "--requeue",
        *more,
        *batch.options,
        stdin=f"#!/bin/sh\n{remind}exec {sidecar}\n",
        timeout=_SBATCH_TIMEOUT_SECONDS,
    )
    lines = output.stdout.split()
    match = _JOB.fullmatch(lines[-1]) if lines else None  # the id is last: filters of a site may print before it
    return batch.job_ids(match[1] if match else _job_by_name(batch, commands, output))


def _job_by_name(batch: JobBatch, commands: SlurmCommands, output: CommandOutput) -> str:
    """Find a job in the queue if sbatch succeeded without printing an id."""
    message = f"sbatch named no job; it said: {output.text or 'nothing'}."
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


def runs_of_array(paths: ProjectPaths, array_id: str) -> Sequence[str] | None:
    """Return the run of each task, or None if the array belongs to another project."""
    try:
        run_ids: list[str] = read_json(paths.array(array_id).runs)["run_ids"]
    except FileNotFoundError:
        return None
    return run_ids
