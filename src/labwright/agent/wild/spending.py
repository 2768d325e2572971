"""What a loop has used, and how long its next runs may take so that its budget is never overrun."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.clock import epoch_seconds, now
from labwright.domain.errors import NotFound
from labwright.domain.run import Run
from labwright.domain.search.budget import BudgetUsage, shortage
from labwright.domain.wild import AT_WORK, Wild
from labwright.services.runs import verbs as runs
from labwright.services.runs.new_run import NewRun, plan_gpus

_HOUR = 3600.0
_LEAST_SECONDS = 1.0  # what has less is not begun
Short = tuple[str, str]  # which part of the budget, and words for it


def wall_seconds(wild: Wild) -> float:
    """How long it has been at work, without pauses."""
    if wild.running_since is None:
        return wild.active_seconds
    return wild.active_seconds + max(0.0, epoch_seconds(now()) - epoch_seconds(wild.running_since))


def clock_stopped(wild: Wild) -> dict[str, Any]:
    return {"active_seconds": wall_seconds(wild), "running_since": None}


def seconds_left(wild: Wild) -> float | None:
    """Until the budget of time ends; None where there is none, or it does not tick."""
    if "wall_seconds" not in wild.budget or wild.status not in AT_WORK:
        return None
    return max(0.0, float(wild.budget["wall_seconds"]) - wall_seconds(wild))


def runs_of(lab: Lab, wild: Wild) -> list[Run]:
    """Those that it made and that are still there."""
    found = []
    for iteration in wild.iterations:
        for run_id in iteration.run_ids:
            try:
                found.append(runs.get(lab, run_id))
            except NotFound:
                continue  # not made yet, or deleted since
    return found


def used(lab: Lab, wild: Wild) -> dict[str, Any]:
    made = runs_of(lab, wild)
    return {
        "tokens": 0,
        "cost": 0.0,
        **wild.used,
        "gpu_hours": sum(_gpu_seconds(run) for run in made) / _HOUR,
        "runs": sum(iteration.made for iteration in wild.iterations),
        "wall_seconds": wall_seconds(wild),
    }


def _elapsed(run: Run) -> float:
    if run.started_at is None:
        return 0.0
    end = epoch_seconds(run.ended_at) if run.ended_at else epoch_seconds(now())
    return max(0.0, end - epoch_seconds(run.started_at))


def _gpu_seconds(run: Run) -> float:
    return (run.earlier_seconds + _elapsed(run)) * run.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How many of the wanted runs may be made now, and how long each may take; or what is short."""

    runs: int
    seconds: float | None = None  # None: as long as it takes
    short: Short | None = None


class Purse:
    """One look at what a loop has used and promised."""

    def __init__(self, lab: Lab, wild: Wild) -> None:
        self._wild = wild
        self._made = runs_of(lab, wild)
        self._count = sum(iteration.made for iteration in wild.iterations)
        wanted = NewRun(command="true", gpus=wild.gpus)
        self.gpus = plan_gpus(lab.cluster.current, wanted, {}).gpus

    def allow(self, wanted: int, slots: int = 1) -> Allowance:
        """Each new run gets its share of what nobody holds yet, as a time limit: together they cannot overrun it.

        `slots`: so many are to find room beside each other.
        """
        short = shortage(self._wild.budget, self._ledger())
        if short is not None:
            return Allowance(runs=0, short=short)
        budget = self._wild.budget
        count = min(wanted, int(budget["runs"]) - self._count) if "runs" in budget else wanted
        limits = [left for left in (self._gpu_share(max(count, slots)), seconds_left(self._wild)) if left is not None]
        if limits and min(limits) < _LEAST_SECONDS:
            part = "gpu_hours" if "gpu_hours" in budget else "wall_seconds"
            return Allowance(runs=0, short=(part, f"less than {_LEAST_SECONDS:g} s would be left for a run"))
        return Allowance(runs=count, seconds=math.floor(min(limits) * 10) / 10 if limits else None)

    def _gpu_share(self, count: int) -> float | None:
        if "gpu_hours" not in self._wild.budget or not self.gpus:
            return None
        return self._unheld() / (count * self.gpus)

    def _unheld(self) -> float:
        """GPU-seconds that are neither used nor within the time limit of a run at work."""
        held = sum(run.gpus * (run.time_limit_seconds or 0.0) for run in self._made if not run.is_terminal)
        ended = sum(_gpu_seconds(run) for run in self._made if run.is_terminal)
        return max(0.0, float(self._wild.budget["gpu_hours"]) * _HOUR - ended - held)

    def _ledger(self) -> BudgetUsage:
        return BudgetUsage(
            runs=self._count,
            gpu_seconds=sum(_gpu_seconds(run) for run in self._made if run.is_terminal),
            promised_gpu_seconds=sum(run.gpus * (run.time_limit_seconds or 0.0) for run in self._unended()),
            wall_seconds=wall_seconds(self._wild),
            run_seconds=max((_elapsed(run) for run in self._made if run.is_terminal), default=0.0),
            gpus=self.gpus,
        )

    def _unended(self) -> Sequence[Run]:
        return [run for run in self._made if not run.is_terminal]
