"""Results of a sweep: means over seeds, the best so far, its lead over the next, and parameter importance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from labwright.domain.metrics.points import deviation_of, mean_of
from labwright.domain.run import RunStatus
from labwright.domain.search.space import canonical

# Two-sided 95 % points of Student's t by degrees of freedom.
_T = (
    (1, 12.71), (2, 4.30), (3, 3.18), (4, 2.78), (5, 2.57), (6, 2.45), (8, 2.31), (10, 2.23), (20, 2.09), (60, 2.0),
    (math.inf, 1.96),
)  # fmt: skip
_CURVE_POINTS = 200
_NAMED = 20  # metric keys listed in a message
_COMPARED = 50  # how many of the next best are compared with the best


@dataclass(slots=True, kw_only=True)
class ConfigurationResult:
    """The runs of one configuration. They differ only in their seed."""

    label: str
    trial: int | None
    params: dict[str, Any] = field(default_factory=dict)
    progress: dict[str, int] = field(default_factory=dict)
    run_ids: list[str] = field(default_factory=list)
    samples: dict[Any, list[float]] = field(default_factory=dict)  # by seed, or by run id without a seed
    ended_at: str = ""
    mean: float | None = None
    std: float | None = None

    @property
    def n(self) -> int:
        return len(self.samples)

    def add(self, run_id: str, status: str, seed: int | None, ended_at: str | None, value: float | None) -> None:
        """Add a run. Only a finished run has a value that counts; it comes before the others."""
        self.progress[status] = self.progress.get(status, 0) + 1
        if ended_at and ended_at > self.ended_at:
            self.ended_at = ended_at
        if value is not None and status == RunStatus.FINISHED and math.isfinite(value):
            self.samples.setdefault(run_id if seed is None else seed, []).append(value)
            self.run_ids.insert(0, run_id)
        else:
            self.run_ids.append(run_id)

    def settle(self) -> None:
        """Compute mean and standard deviation over seeds. A seed that ran twice counts once."""
        values = [mean_of(several) for several in self.samples.values()]
        if values:
            self.mean = mean_of(values)
        if len(values) > 1:
            assert self.mean is not None
            self.std = deviation_of(values, self.mean)

    def to_dict(self) -> dict[str, Any]:
        names = ("trial", "params", "mean", "std", "n", "progress", "run_ids")
        return {"config_hash": self.label, **{name: getattr(self, name) for name in names}}


def ranked(configurations: Sequence[ConfigurationResult], goal: str) -> list[ConfigurationResult]:
    """Sort by mean, best first. Configurations without a value come last."""
    sign = 1 if goal == "min" else -1

    def order(found: ConfigurationResult) -> tuple[bool, float, int]:
        return found.mean is None, sign * (found.mean or 0.0), found.trial if found.trial is not None else 1 << 60

    return sorted(configurations, key=order)


def best_so_far(configurations: Sequence[ConfigurationResult], goal: str) -> list[tuple[int, float]]:
    """Return (configurations done, best value) at each improvement and at the end."""
    done = sorted((c for c in configurations if c.mean is not None), key=lambda c: c.ended_at)
    better = min if goal == "min" else max
    curve: list[tuple[int, float]] = []
    for count, found in enumerate(done, 1):
        assert found.mean is not None
        best = better(curve[-1][1], found.mean) if curve else found.mean
        if not curve or best != curve[-1][1] or count == len(done):
            curve.append((count, best))
    return curve if len(curve) <= _CURVE_POINTS else [*curve[: _CURVE_POINTS - 1], curve[-1]]


@dataclass(frozen=True, slots=True)
class LeadVerdict:
    kind: str  # none | only_one | unknown | within_noise | clear
    text: str


def _no_value(key: str, logged: Sequence[str]) -> str:
    if logged and key not in logged:
        return f"No run has logged {key}. Logged metrics: {', '.join(logged[:_NAMED])}."
    return f"No run has finished with a value of {key} yet{' (NaN and infinity do not count)' if logged else ''}."


def judge_lead(best_first: Sequence[ConfigurationResult], key: str, logged: Sequence[str] = ()) -> LeadVerdict:
    """Judge whether the best leads the next by more than the noise between seeds.

    `logged` are the keys of metrics that runs have, for the message if no run has a value of `key`.
    """
    valued = [found for found in best_first if found.mean is not None]
    if not valued:
        return LeadVerdict("none", _no_value(key, logged))
    if len(valued) == 1:
        return LeadVerdict("only_one", f"Only one configuration has a value of {key}, so there is nothing to compare.")
    best, second = valued[0], valued[1]
    assert best.mean is not None
    assert second.mean is not None
    gap = abs(best.mean - second.mean)
    if best.n < 2 or second.n < 2:
        return LeadVerdict(
            "unknown",
            f"The best leads by {gap:.3g}, but {'it' if best.n < 2 else 'the next'} has only one run, so the noise "
            "between seeds is unknown. Run more seeds (`seeds: 3`).",
        )
    alike = [found for found in valued[1 : 1 + _COMPARED] if found.n > 1 and not differ(best, found)]
    others = min(_COMPARED, len(valued) - 1)
    also = (
        f" {len(alike)} of the next {others} configurations do not differ from the best significantly." if alike else ""
    )
    test = f"(std {_pooled(best, second):.3g}, n {best.n} and {second.n}; t test, 95 %)"
    if alike and alike[0] is second:
        reason = f"which is within the noise between seeds {test}."
        return LeadVerdict("within_noise", f"The best leads the next by {gap:.3g}, {reason}{also}")
    reason = f"more than the noise between seeds {test}."
    return LeadVerdict("clear", f"The best leads the next by {gap:.3g}, {reason}{also}")


def _pooled(one: ConfigurationResult, other: ConfigurationResult) -> float:
    return math.hypot(one.std or 0.0, other.std or 0.0) / math.sqrt(2)


def differ(one: ConfigurationResult, other: ConfigurationResult) -> bool:
    """Compare two means with Welch's t test, which allows different numbers of seeds and different noise."""
    assert one.mean is not None
    assert other.mean is not None
    scale = max(one.std or 0.0, other.std or 0.0)  # scaled, because the square of a diverged loss overflows
    if scale == 0.0:
        return one.mean != other.mean
    if math.isinf(scale):
        return False  # the spread itself overflowed: the means say nothing
    parts = [((found.std or 0.0) / scale) ** 2 / found.n for found in (one, other)]
    spread = sum(parts)
    freedom = spread**2 / sum(
        part**2 / (found.n - 1) for part, found in zip(parts, (one, other), strict=True) if found.n > 1
    )
    return abs(one.mean - other.mean) / scale > _t(freedom) * math.sqrt(spread)


def _t(freedom: float) -> float:
    """Interpolate log t over 1/freedom, where it is almost linear. The result is at most 3 % too strict."""
    (fewer, above), (more, below) = next(pair for pair in pairwise(_T) if freedom <= pair[1][0])
    share = (1 / freedom - 1 / more) / (1 / fewer - 1 / more)
    return below * math.pow(above / below, share)


IMPORTANCE_METHOD = "share of rank variance explained by each parameter alone (epsilon squared)"
LEAST_CONFIGURATIONS = 10
_MANY_VALUES = 8
_PARTS = 6
_LEAST_PARTS = 3  # two parts cannot show a best value in the middle


def importance(params: Sequence[dict[str, Any]], values: Sequence[float]) -> dict[str, float] | None:
    """Return how much of the spread of results each parameter explains alone, largest first.

    None means too few configurations. For each parameter the configurations are grouped by its value (a range into
    parts of equal size). The result is the share of rank variance between the groups, corrected for the number of
    groups (epsilon squared). Ranks limit the effect of one diverged run; the correction keeps pure noise near 0.
    Interactions of two parameters are not measured: that would need a model and more configurations.
    """
    if len(values) < LEAST_CONFIGURATIONS:
        return None
    ranks = _ranks(values)
    names = dict.fromkeys(name for config in params for name in config)
    found = {name: _explained([config.get(name) for config in params], ranks) for name in names}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the ranks. Equal values share their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2
        start = end + 1
    return ranks


def _explained(column: Sequence[Any], ranks: Sequence[float]) -> float:
    groups: dict[Any, list[float]] = {}
    for label, rank in zip(_labels(column), ranks, strict=True):
        groups.setdefault(label, []).append(rank)
    count, mean = len(ranks), sum(ranks) / len(ranks)
    total = sum((rank - mean) ** 2 for rank in ranks)
    if len(groups) < 2 or len(groups) >= count or total == 0:
        return 0.0
    between = sum(len(group) * (sum(group) / len(group) - mean) ** 2 for group in groups.values())
    share = 1 - (1 - between / total) * (count - 1) / (count - len(groups))
    return round(max(0.0, share), 4)


def _labels(column: Sequence[Any]) -> list[Any]:
    """Return the group of each value: the value itself if there are few, else its part of the sorted numbers."""
    if not all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in column):
        return [canonical(value) for value in column]
    numbers = [value for value in column if value is not None]
    if len(set(numbers)) <= _MANY_VALUES:
        return list(column)
    ranks = _ranks(numbers)
    parts = max(_LEAST_PARTS, min(_PARTS, len(numbers) // 4))
    placed = iter(int(rank * parts / len(numbers)) for rank in ranks)
    return [None if value is None else next(placed) for value in column]
