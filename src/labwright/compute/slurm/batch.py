"""Send runs to Slurm: alone, or together as an array where they ask for the same."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from labwright.compute.slurm.commands import Said, SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.dialect import Dialect
from labwright.compute.slurm.resources import SlurmDefaults, sbatch_options
from labwright.domain.ids import ARRAY, new_id
from labwright.domain.run import Run
from labwright.files import read_json, write_json
from labwright.paths import ArrayPaths, ProjectPaths, RunPaths

SIDECAR = Path(__file__).parents[2] / "sidecar" / "__main__.py"
_SBATCH_TIMEOUT_SECONDS = 30.0
_REMIND_SRUN = '[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"'
_JOB = re.compile(r"(\d+)(?:;.*)?")  # and the cluster, where there are several


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one sbatch sends. Its name leads back to the runs, also when nobody lived to hear the job's id."""

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


def batches_of(runs: Iterable[Run], defaults: SlurmDefaults, max_array_size: int) -> Iterator[Batch]:
    """One array for each equal request, in pieces of what an array may hold."""
    equal: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        equal.setdefault(sbatch_options(run, defaults), []).append(run)
    for options, together in equal.items():
        for first in range(0, len(together), max_array_size):
            yield _batch(together[first : first + max_array_size], options)


def halves(batch: Batch) -> tuple[Batch, Batch]:
    middle = (len(batch.runs) + 1) // 2
    return _batch(batch.runs[:middle], batch.options), _batch(batch.runs[middle:], batch.options)


def _batch(runs: Sequence[Run], options: tuple[str, ...]) -> Batch:
    return Batch(name=runs[0].id if len(runs) == 1 else new_id(ARRAY), runs=tuple(runs), options=options)


def send(
    batch: Batch, commands: SlurmCommands, paths: ProjectPaths, defaults: SlurmDefaults, dialect: Dialect
) -> dict[str, str]:
    """The job id of each run. Which task is which run lies on disk before Slurm hears of it."""
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
    """A site's own filters may print before it."""
    lines = said.out.split()
    match = _JOB.fullmatch(lines[-1]) if lines else None
    return match[1] if match else None


def _job_by_name(batch: Batch, commands: SlurmCommands, said: Said) -> str:
    """sbatch was content and named no job: whether there is one, the queue knows."""
    words = f"sbatch named no job; it said: {said.words or 'nothing'}."
    try:
        listed = commands.call(
            "squeue", "-h", "-a", "-t", "all", f"--name={batch.name}", f"--user={os.getuid()}", "-o%F"
        )
    except (SlurmSilent, SlurmRefused) as error:
        raise SlurmSilent(f"{words} squeue: {error.message}", in_doubt=True) from error
    if not listed.split():
        raise SlurmRefused(words)
    return listed.split()[0]


def _literal(path: str) -> str:
    """A `%` in a folder's name is not one of sbatch's own."""
    return path.replace("%", "%%")


def _script(python: str, target: str, dialect: Dialect) -> str:
    """The environment that sbatch sends along has no secret in it; the job's own comes from the run folder."""
    remind = f"{_REMIND_SRUN}\n" if dialect.srun_forgets_cpus else ""
    return f"#!/bin/sh\n{remind}exec {shlex.join([python, '-I', '-S', str(SIDECAR), 'slurm', target])}\n"


def runs_of_array(paths: ProjectPaths, array_id: str) -> Sequence[str] | None:
    """Which run each task is; None for an array that is not of this project."""
    try:
        found: list[str] = read_json(paths.array(array_id).runs)["run_ids"]
    except FileNotFoundError:
        return None
    return found
