"""Jobs of a paused sweep that wait in Slurm's queue are held there, and released when it goes on.

Seen to once a second instead of by the verbs, so that a kill between a verb and its order leaves nothing undone.
A controller that is killed forgets the orders of its last seconds, so each is given again until squeue has agreed with
it for a while. What somebody else holds stays held: a file in the run folder says which holds are ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from labwright.compute.lab import Lab
from labwright.compute.slurm.holding import HOLD, RELEASE
from labwright.compute.slurm.states import HELD, PENDING_WORDS, USER_HOLD
from labwright.domain.run import Run, RunStatus
from labwright.store import sweeps

_SETTLED_SECONDS = 20.0  # a controller saves its state more often than that


@dataclass(slots=True, kw_only=True)
class _Order:
    verb: str  # HOLD or RELEASE
    given_at: float
    is_settled: bool = False  # whatever becomes of the job from now on is somebody's will

    @property
    def is_due(self) -> bool:
        return not self.is_settled and time.monotonic() >= self.given_at + _SETTLED_SECONDS


class SlurmHolds:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._last: dict[str, _Order] = {}  # by run

    def see_to(self, active: Iterable[Run]) -> None:
        pending = [run for run in active if _is_pending(run) and not run.stop_requested]
        paused = {sweep_id for sweep_id, limit in sweeps.limits(self._lab.db.reader()).items() if limit == 0}
        self._settle(pending)
        hold = [run for run in pending if run.sweep_id in paused and self._is_to_hear(run, HOLD)]
        release = [run for run in pending if run.sweep_id not in paused and self._is_to_hear(run, RELEASE)]
        ours = [run for run in release if os.path.exists(self._lab.paths.run(run.id).held)]
        if hold:
            self._lab.slurm.hold(hold)
        if ours:
            self._lab.slurm.release(ours)
        now = time.monotonic()
        self._last |= {run.id: _Order(verb=HOLD, given_at=now) for run in hold}
        self._last |= {run.id: _Order(verb=RELEASE, given_at=now, is_settled=run not in ours) for run in release}

    def _is_to_hear(self, run: Run, verb: str) -> bool:
        last = self._last.get(run.id)
        return last is None or last.verb != verb or (last.is_due and not _agrees(run, verb))

    def _settle(self, pending: list[Run]) -> None:
        """A job that has begun, or that squeue has listed as ordered, needs no more orders."""
        waiting = {run.id: run for run in pending}
        for run_id, order in list(self._last.items()):
            run = waiting.get(run_id)
            if run is None:
                del self._last[run_id]
            elif order.is_due and _agrees(run, order.verb):
                order.is_settled = True
            else:
                continue
            if order.verb == RELEASE:
                with suppress(FileNotFoundError):
                    os.unlink(self._lab.paths.run(run_id).held)


def _is_pending(run: Run) -> bool:
    return run.is_on_slurm and run.status is RunStatus.LAUNCHING and run.slurm_job_id is not None


def _agrees(run: Run, verb: str) -> bool:
    """Whether squeue lists the job as it was ordered. What it does not list as pending has no say."""
    if not run.status_reason.startswith(PENDING_WORDS):
        return False
    if verb == HOLD:
        return HELD.search(run.status_reason) is not None
    return USER_HOLD not in run.status_reason
