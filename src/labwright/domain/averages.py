"""Sum, mean and deviation that do not fail on numbers near the end of what a float holds, as a diverged loss has."""

from __future__ import annotations

import math
from collections.abc import Sequence

_SCALE = 2.0**80


def total_of(values: Sequence[float]) -> float:
    """Of finite values. Beyond the largest float it is infinite: no mean follows from it any more."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.fsum(value / _SCALE for value in values) * _SCALE


def mean_of(values: Sequence[float]) -> float:
    """Rounding puts it outside of what it is the mean of: equal values would differ from it, and so deviate."""
    try:
        mean = math.fsum(values) / len(values)
    except OverflowError:
        mean = math.fsum(value / _SCALE for value in values) / len(values) * _SCALE
    return max(min(values), min(max(values), mean))


def deviation_of(values: Sequence[float], mean: float) -> float:
    """Of a sample of two or more."""
    return math.hypot(*(value - mean for value in values)) / math.sqrt(len(values) - 1)
