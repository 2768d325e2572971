"""Points of a metric series, their statistics, and numbers as they appear in JSON."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

STEPS = range(-(2**63), 2**63)  # 64-bit integers
_MAX_TIME = 253_402_300_799.0  # the end of the year 9999


@dataclass(slots=True)
class Points:
    """Three columns of equal length, in order of arrival."""

    steps: array[int]
    times: array[float]
    values: array[float]

    @classmethod
    def empty(cls) -> Points:
        return cls(array("q"), array("d"), array("d"))

    def __len__(self) -> int:
        return len(self.values)

    def extend(self, other: Points) -> None:
        self.steps.extend(other.steps)
        self.times.extend(other.times)
        self.values.extend(other.values)

    def part(self, start: int, end: int) -> Points:
        return Points(self.steps[start:end], self.times[start:end], self.values[start:end])

    @property
    def is_ascending(self) -> bool:
        steps = self.steps
        return all(a < b for a, b in pairwise(steps))

    def in_step_order(self) -> Points:
        """Return the points sorted by step. The last arrival wins if a step has several points."""
        if self.is_ascending:
            return self
        newest = {step: index for index, step in enumerate(self.steps)}
        return self.at([newest[step] for step in sorted(newest)])

    def at(self, positions: Sequence[int]) -> Points:
        return Points(
            array("q", (self.steps[i] for i in positions)),
            array("d", (self.times[i] for i in positions)),
            array("d", (self.values[i] for i in positions)),
        )


@dataclass(slots=True)
class Statistics:
    """Statistics of a whole series, kept up to date without reading it again."""

    count: int = 0
    finite: int = 0
    total: float = 0.0
    low: float | None = None
    high: float | None = None
    last: float | None = None
    last_step: int | None = None
    last_time: float | None = None

    def add(self, points: Points) -> None:
        self.count += len(points)
        self._weigh(points.values)
        newest = len(points) - 1
        self.last, self.last_step, self.last_time = points.values[newest], points.steps[newest], points.times[newest]

    def weigh_anew(self, values: Iterable[float]) -> None:
        """Recompute extremes and mean from these values. Count and last point stay."""
        self.finite, self.total, self.low, self.high = 0, 0.0, None, None
        self._weigh(values)

    def _weigh(self, values: Iterable[float]) -> None:
        finite = [value for value in values if math.isfinite(value)]
        self.finite += len(finite)
        if math.isfinite(self.total):
            self.total += total_of(finite)
        if finite:
            self.low = min(finite) if self.low is None else min(self.low, min(finite))
            self.high = max(finite) if self.high is None else max(self.high, max(finite))

    @property
    def mean(self) -> float | None:
        """The mean, or None if the sum overflowed: a wrong number would be worse."""
        return self.total / self.finite if self.finite and math.isfinite(self.total) else None


def as_json(value: float | None) -> float | str | None:
    """Return NaN and infinity as text: JSON has no numbers for them."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")


def as_number(value: object) -> float | None:
    """Parse a JSON value as a number, or return None."""
    if isinstance(value, bool | int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(str(value))
    return None


def as_time(value: object) -> float | None:
    """Parse seconds since 1970, up to the year 9999, or return None."""
    number = as_number(value)
    return number if number is not None and abs(number) <= _MAX_TIME else None


def as_step(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value not in STEPS:
        return None
    return value


def listed(keys: Iterable[str], most: int = 20) -> str:
    """List some keys in a sentence. A key with unprintable characters is quoted."""
    return ", ".join(key if key.isprintable() else repr(key) for key in sorted(keys)[:most])


def mean_and_spread(columns: Iterable[Sequence[float]]) -> list[tuple[float, float | None, int]]:
    """Return mean, standard deviation and count of each column's finite values. One value has no deviation."""
    found = []
    for column in columns:
        numbers = [value for value in column if math.isfinite(value)]
        mean = mean_of(numbers) if numbers else math.nan
        spread = deviation_of(numbers, mean) if len(numbers) > 1 else None
        found.append((mean, spread, len(numbers)))
    return found


_SCALE = 2.0**80  # sums near the largest float are computed scaled down


def total_of(values: Sequence[float]) -> float:
    """Return the sum of finite values, or infinity if it overflows."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.fsum(value / _SCALE for value in values) * _SCALE


def mean_of(values: Sequence[float]) -> float:
    """Return the mean, clamped to the range of the values: rounding must not move it outside."""
    try:
        mean = math.fsum(values) / len(values)
    except OverflowError:
        mean = math.fsum(value / _SCALE for value in values) / len(values) * _SCALE
    return max(min(values), min(max(values), mean))


def deviation_of(values: Sequence[float], mean: float) -> float:
    """Return the standard deviation of a sample of two or more."""
    return math.hypot(*(value - mean for value in values)) / math.sqrt(len(values) - 1)
