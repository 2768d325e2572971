"""When a run is not worth going on with, judged by how others of its sweep did at the same step.

`median`: worse than the median of the others. `halving`: at steps 1, 3, 9, 27 … (`first_step` and `factor`) not among
the best third of all that came so far. Values are the best so far, so that one noisy step decides nothing.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

AFTER_RUNS = 5  # median: so many others must have come as far
FACTOR = 3
FIRST_STEP = 1


@dataclass(frozen=True, slots=True)
class BestCurve:
    """The best value so far at each step of one run."""

    steps: Sequence[int]
    best: Sequence[float]

    @classmethod
    def of(cls, steps: Sequence[int], values: Sequence[float], goal: str) -> BestCurve:
        """NaN never is the best; a run that has nothing else is as bad as can be."""
        worst = math.inf if goal == "min" else -math.inf
        better = min if goal == "min" else max
        return cls(steps, list(accumulate((worst if value != value else value for value in values), better)))

    @property
    def last_step(self) -> int:
        return self.steps[-1] if self.steps else -1

    def at(self, step: int) -> float | None:
        """None if it has not come so far."""
        if step > self.last_step:
            return None
        position = bisect_right(self.steps, step) - 1
        return self.best[position] if position >= 0 else None


def checkpoint(rule: dict[str, Any], last_step: int) -> int | None:
    """The step at which a run that has come so far is judged; None if it is too early."""
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
    """Why the run should end, nothing if it may go on, None while too few have come as far to say."""
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
        return f"{value:.4g} at step {step}, the median of {len(found)} others is {middle:.4g}" if worse else ""
    factor = rule.get("factor", FACTOR)
    if len(found) + 1 < factor:
        return None
    kept = max(1, math.ceil((len(found) + 1) / factor))
    better = sum(1 for other in found if other * sign < value * sign)
    return f"{value:.4g} at step {step}, {better} of {len(found)} others did better" if better >= kept else ""
