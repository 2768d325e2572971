"""Keep pending jobs from starting, and let them go again. Only holds of our own are released."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from labwright.compute.slurm.commands import IDS_AT_ONCE, TRY_AGAIN_SECONDS, SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.job_book import JobBook
from labwright.compute.slurm.job_lists import gathered
from labwright.compute.slurm.states import held_arguments, read_held
from labwright.domain.run import Run
from labwright.files import write_json
from labwright.paths import ProjectPaths

log = logging.getLogger(__name__)
HOLD = "uhold"  # as the user, also where that is root: whoever owns a job may release it
RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    verb: str  # HOLD or RELEASE
    run: Run
    not_before: float = 0.0


class Holding:
    def __init__(self, commands: SlurmCommands, paths: ProjectPaths, book: JobBook) -> None:
        self._commands = commands
        self._paths = paths
        self._book = book

    def carry_out(self, orders: list[Keep]) -> list[Keep]:
        """Answers what is left to do later."""
        return [*self._keep(HOLD, self._hold, orders), *self._keep(RELEASE, self._release, orders)]

    def _keep(self, verb: str, keep: Callable[[dict[str, Run]], None], orders: list[Keep]) -> list[Keep]:
        runs = [order.run for order in orders if order.verb == verb and not self._book.has_begun(order.run)]
        jobs = {job_id: run for run in runs if (job_id := self._book.id_of(run))}
        try:
            if jobs:
                keep(jobs)
        except SlurmSilent:
            later = time.monotonic() + TRY_AGAIN_SECONDS
            return [Keep(verb=verb, run=run, not_before=later) for run in runs]
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
