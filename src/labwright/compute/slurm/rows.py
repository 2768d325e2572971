"""Which row of squeue is about which run."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from labwright.compute.slurm.batch import runs_of_array
from labwright.compute.slurm.states import JobRow, Phase
from labwright.domain.ids import ARRAY, RUN, is_id
from labwright.domain.run import Run
from labwright.paths import ProjectPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """The row of squeue that is about one run, and the job's id as scancel wants it."""

    row: JobRow
    job_id: str


class RunRows:
    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._arrays: dict[str, list[str] | None] = {}  # their runs, as each was written down when it was sent

    def by_run(self, rows: tuple[JobRow, ...], active: list[Run]) -> dict[str, RunJob]:
        """Of two jobs for one run (sbatch was heard twice) the one that is not over counts."""
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
        """A row of its array, which is there without it: of a pending task that somebody cancels, Slurm keeps nothing.
        One that had been started would have left a log."""
        array, _, task = (run.slurm_job_id or "").partition("_")
        for row in rows:
            if task and row.job_id == array and (run.id, int(task)) in self._runs_of(replace(row, tasks=(int(task),))):
                return None if os.path.exists(self._paths.array(row.name).log(task)) else row
        return None


def _by_number(row: JobRow, by_job: dict[str, str]) -> list[tuple[str, int | None]]:
    """For a job that somebody gave another name. Names come first, since numbers begin again from 1 at some time."""
    if row.name.startswith(f"{ARRAY}-"):
        return []  # another project's
    numbers = ((row.id_of(task), task) for task in row.tasks or (None,))
    return [(by_job[number], task) for number, task in numbers if number in by_job]
