"""When to stop a run early, compared with other runs of its sweep at the same step.

`median`: the run is worse than the median of the others. `halving`: at steps 1, 3, 9, 27 … (`first_step` and `factor`)
the run is not in the best third of all runs that reached the step. Runs are compared by their best value so far, so
one noisy step decides nothing.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

AFTER_RUNS = 5  # median: how many other runs must have reached the step
FACTOR = 3
FIRST_STEP = 1


@dataclass(frozen=True, slots=True)
class BestCurve:
    """The best value so far at each step of one run."""

    steps: Sequence[int]
    best: Sequence[float]

    @classmethod
    def of(cls, steps: Sequence[int], values: Sequence[float], goal: str) -> BestCurve:
        """Return the curve of a run. NaN is never the best; a run with only NaN gets the worst value."""
        worst = math.inf if goal == "min" else -math.inf
        better = min if goal == "min" else max
        return cls(steps, list(accumulate((worst if value != value else value for value in values), better)))

    @property
    def last_step(self) -> int:
        return self.steps[-1] if self.steps else -1

    def at(self, step: int) -> float | None:
        """Return the best value at a step, or None if the run has not reached it."""
        if step > self.last_step:
            return None
        position = bisect_right(self.steps, step) - 1
        return self.best[position] if position >= 0 else None


def checkpoint(rule: dict[str, Any], last_step: int) -> int | None:
    """Return the step at which a run with this last step is compared, or None if it is too early."""
    if rule["method"] == "median":
        return last_step if last_step >= rule.get("from_step", 0) else None
    step, factor = rule.get("first_step", FIRST_STEP), rule.get("factor", FACTOR)
    if last_step < step:
        return None
    while step * factor <= last_step:
        step *= factor
    return int(step)


def reason_to_stop(
    rule: dict[str, Any], goal: str, own: BestCurve, others: Sequence[BestCurve], step: int
) -> str | None:
    """Return why the run should stop, "" if it may continue, or None if too few runs have reached the step."""
    value = own.at(step)
    found = [other for other in (progress.at(step) for progress in others) if other is not None]
    if value is None:
        return None
    sign = 1 if goal == "min" else -1
    if rule["method"] == "median":
        if len(found) < rule.get("after_runs", AFTER_RUNS):
            return None
        middle = statistics.median(found)
        worse = value * sign > middle * sign
        return f"{value:.4g} at step {step}, the median of {len(found)} other runs is {middle:.4g}" if worse else ""
    factor = rule.get("factor", FACTOR)
    if len(found) + 1 < factor:
        return None
    kept = max(1, math.ceil((len(found) + 1) / factor))
    better = sum(1 for other in found if other * sign < value * sign)
    return f"{value:.4g} at step {step}, {better} of {len(found)} other runs were better" if better >= kept else ""
