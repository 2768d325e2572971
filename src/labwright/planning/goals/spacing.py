"""Concrete values for a range: log-spaced, powers of two, or even steps, with numbers a person would choose."""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST_VALUES = 64
_LEAST_DOUBLED = 8


@dataclass(frozen=True, slots=True)
class Wish:
    """What the goal says about how a range is to be divided."""

    count: int | None = None
    step: float | None = None
    factor: float | None = None
    scale: str = ""  # log, linear


def asked_for(low: float, high: float, wish: Wish) -> int:
    """How many values the words ask for, where they say so; 0 where the rules are free to choose."""
    low, high = min(low, high), max(low, high)
    if wish.step:
        return int((high - low) / abs(wish.step) + 1e-9) + 1
    if wish.factor and wish.factor > 1 and low > 0:
        return int(math.log(high / low, wish.factor) + 1e-9) + 1
    return wish.count or 0


def spaced(low: float, high: float, *, whole: bool, by_nature_log: bool, wish: Wish) -> tuple[list[float], str]:
    """The values from low to high, and "log" or "linear"."""
    if low > high:
        low, high = high, low
    if low == high:
        return [low], "listed"
    if wish.step:
        return _typed(_by_step(low, high, wish.step), whole=whole), "linear"
    log = low > 0 and (wish.scale == "log" or bool(wish.factor) or (wish.scale != "linear" and by_nature_log))
    log = log or (low > 0 and not wish.scale and (high / low >= 100 or (whole and _doubles(low, high, wish))))
    values = _logarithmic(low, high, wish, whole=whole) if log else _even(low, high, wish, whole=whole)
    return _typed(values, whole=whole), "log" if log else "linear"


def _doubles(low: float, high: float, wish: Wish) -> bool:
    """`hidden 32 to 256`: who names powers of two as ends means those between them; not for a few layers."""
    return not wish.count and low >= _LEAST_DOUBLED and _is_power_of_two(low) and _is_power_of_two(high)


def _by_step(low: float, high: float, step: float) -> list[float]:
    count = int((high - low) / abs(step) + 1e-9) + 1
    return [low + abs(step) * index for index in range(min(count, MOST_VALUES))]


def _logarithmic(low: float, high: float, wish: Wish, *, whole: bool) -> list[float]:
    if wish.factor and wish.factor > 1:
        count = int(math.log(high / low, wish.factor) + 1e-9) + 1
        return [low * wish.factor**index for index in range(min(count, MOST_VALUES))]
    if wish.count:
        return _geometric(low, high, wish.count)
    if whole and _is_power_of_two(low) and _is_power_of_two(high):
        return [low * 2**power for power in range(round(math.log2(high / low)) + 1)][:MOST_VALUES]
    decades = math.log10(high / low)
    return _geometric(low, high, round(decades) + 1 if decades > 2.5 else max(3, round(2 * decades) + 1))


def _geometric(low: float, high: float, count: int) -> list[float]:
    """The ends as given, what lies between them rounded to what a person would write."""
    count = max(2, min(count, MOST_VALUES))
    inner = [low * (high / low) ** (index / (count - 1)) for index in range(1, count - 1)]
    digits = 1 if len({_rounded(value, 1) for value in inner} | {low, high}) == count else 3
    return [low, *(_rounded(value, digits) for value in inner), high]


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _even(low: float, high: float, wish: Wish, *, whole: bool) -> list[float]:
    if wish.count:
        count = max(2, min(wish.count, MOST_VALUES))
        return [low + (high - low) * index / (count - 1) for index in range(count)]
    if whole and high - low <= 6:
        return [low + index for index in range(int(high - low) + 1)]
    # Four, five or six values: whichever step is the roundest number.
    count = min((5, 6, 4, 3), key=lambda count: len(f"{(high - low) / (count - 1):.10g}"))
    return [low + (high - low) * index / (count - 1) for index in range(count)]


def _typed(values: list[float], *, whole: bool) -> list[float]:
    tidy = [float(f"{value:.10g}") for value in values]
    found = [round(value) for value in tidy] if whole else tidy
    return list(dict.fromkeys(found))


def _is_power_of_two(value: float) -> bool:
    return value >= 1 and value == int(value) and (int(value) & (int(value) - 1)) == 0
