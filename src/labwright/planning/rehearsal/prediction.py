"""How long a whole plan takes, from a few short runs. An interval, with what it is based on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labwright.planning.rehearsal.record import Prediction

_JITTER_SECONDS = 0.15  # two runs of the same thing differ by so much anyway
_VARIES = (0.8, 1.4)  # other seeds, other machines' load, several runs at a time
_TELLING_SECONDS = 0.4  # by so much two runs have to differ before their difference says anything


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of so many steps or epochs."""

    amount: float
    seconds: float


def is_telling(small: Measured, large: Measured) -> bool:
    return large.seconds - small.seconds >= _TELLING_SECONDS


def run_seconds(small: Measured, large: Measured, full: float) -> tuple[float, float]:
    """Of one run of the full length: what starting costs, and a rate with the jitter on either side."""
    if large.amount >= full:
        low = high = large.seconds
    else:
        steps, extra = large.amount - small.amount, large.seconds - small.seconds
        low, high = (
            small.seconds + max(0.0, extra + sign * _JITTER_SECONDS) / steps * (full - small.amount) for sign in (-1, 1)
        )
    return around(max(large.seconds, low), high)


def around(low: float, high: float) -> tuple[float, float]:
    """With room for what a few runs do not show."""
    return low * _VARIES[0], high * _VARIES[1]


def predict(
    each: Sequence[tuple[float, float]], runs: int, at_a_time: int, memory_mb: float | None, basis: str
) -> Prediction:
    """`each`: the interval of one run, for each configuration that was measured; the widest counts."""
    if not each:
        return Prediction(runs=runs, at_a_time=at_a_time, memory_mb=memory_mb, basis=basis)
    low, high = min(part[0] for part in each), max(part[1] for part in each)
    return Prediction(
        runs=runs,
        at_a_time=at_a_time,
        run_seconds=(round(low, 2), round(high, 2)),
        total_seconds=(round(runs * low / at_a_time, 1), round(math.ceil(runs / at_a_time) * high, 1)),
        memory_mb=memory_mb,
        basis=basis,
    )
