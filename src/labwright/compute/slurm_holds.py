"""Jobs of a paused sweep that wait in Slurm's queue are held there, and released when it goes on.

Seen to once a second instead of by the verbs, so that a kill between a verb and its order leaves nothing undone.
What somebody else holds stays held: a file in the run folder says which holds are ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from labwright.compute.lab import Lab
from labwright.domain.run import Run, RunStatus
from labwright.store import sweeps


class SlurmHolds:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._told: dict[str, str] = {}  # by run: hold or release, whichever came last

    def see_to(self, active: Iterable[Run]) -> None:
        pending = [run for run in active if _is_pending(run) and not run.stop_requested]
        paused = {sweep_id for sweep_id, limit in sweeps.limits(self._lab.db.reader()).items() if limit == 0}
        hold = [run for run in pending if run.sweep_id in paused and self._told.get(run.id) != "hold"]
        release = [run for run in pending if run.sweep_id not in paused and self._is_held_by_us(run)]
        if hold:
            self._lab.slurm.hold(hold)
        if release:
            self._lab.slurm.release(release)
        kept = {run.id: self._told.get(run.id, "release") for run in pending}
        self._told = kept | {run.id: "hold" for run in hold} | {run.id: "release" for run in release}

    def _is_held_by_us(self, run: Run) -> bool:
        """After a restart, its file says so."""
        told = self._told.get(run.id)
        return told == "hold" or (told is None and os.path.exists(self._lab.paths.run(run.id).held))


def _is_pending(run: Run) -> bool:
    return run.is_on_slurm and run.status is RunStatus.LAUNCHING and run.slurm_job_id is not None
