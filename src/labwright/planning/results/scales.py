"""From values to places on an axis: linear, logarithmic, or one place a value. With the ticks to be read off there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_LOG_FROM = 30.0  # values that are so many times apart are told apart only on a logarithmic axis
_TICKS = 5
_NAMED_VALUES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """`at` answers a share of the axis, between 0 and 1."""

    low: float
    high: float
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()  # values and their words

    def at(self, value: float) -> float:
        low, high, here = (
            (math.log(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        return (here - low) / (high - low)


def of_numbers(values: Sequence[float], *, padding: float = 0.06) -> Scale:
    """Round ticks over all of them; a single value stands in the middle."""
    low, high = min(values), max(values)
    room = (high - low) * padding or abs(high) * 0.1 or 1.0
    low, high = low - room, high + room
    return Scale(low=low, high=high, ticks=tuple((tick, words(tick)) for tick in _round_ticks(low, high)))


def of_parameter(values: Sequence[Any]) -> tuple[Scale, dict[int, float]]:
    """For the values that were tried, in their order; and where each is. Numbers by size, anything else one by one."""
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if not numeric or len(values) < 2:
        places = {index: float(index) for index in range(len(values))}
        ticks = tuple((place, _short(values[index])) for index, place in places.items())
        return Scale(low=-0.5, high=len(values) - 0.5, ticks=ticks), places
    numbers = [float(value) for value in values]
    scale = _of_tried(numbers)
    return scale, dict(enumerate(numbers))


def _of_tried(numbers: list[float]) -> Scale:
    low, high = min(numbers), max(numbers)
    shown = sorted(set(numbers))
    log = low > 0 and (high / low >= _LOG_FROM or _least_gap([math.log(v) for v in shown]) > _least_gap(shown))
    if log:
        room = (high / low) ** 0.06
        low, high = low / room, high * room
    else:
        room = (high - low) * 0.06 or 1.0
        low, high = low - room, high + room
    named = shown if len(shown) <= _NAMED_VALUES else [shown[i * (len(shown) - 1) // 5] for i in range(6)]
    return Scale(low=low, high=high, log=log, ticks=tuple((value, words(value)) for value in named))


def _least_gap(numbers: list[float]) -> float:
    """How far the nearest two are apart, as a share of them all: 0.001, 0.003, 0.01 are told apart best by ratio."""
    gaps = [after - before for before, after in itertools.pairwise(numbers)]
    return min(gaps) / sum(gaps) if gaps else 1.0


def _round_ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first = math.ceil(low / step)
    return [round(number * step, 12) for number in range(first, math.floor(high / step) + 1)]


def words(value: float) -> str:
    return f"{value:.4g}"


def _short(value: Any) -> str:
    text = {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    return text if len(text) <= 18 else f"{text[:17]}…"
