"""What rules search through: the values that a goal names, or ranges around a flag's default."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from labwright.agent.wild.experiment import is_about_learning
from labwright.domain.errors import Invalid
from labwright.planning.goals.facts import GoalReading, Variation
from labwright.planning.goals.names import is_log_scaled
from labwright.planning.scan import EntryPoint, Flag

_MOST = 8  # flags, where the goal names none: more are not searched with a few dozen runs
_DECADE = 10.0
_LENGTHS = {"log", "linear"}


def space_of(reading: GoalReading, entry: EntryPoint) -> dict[str, Any]:
    """By flag, in the form of a sweep's parameters."""
    named: dict[str, Any] = {variation.flag: _of_variation(variation, entry) for variation in reading.variations}
    for flag in _flags_asked_about(reading, entry):
        if (found := around_default(flag)) is not None:
            named.setdefault(flag.name, found)
    return named or _of_all(entry, reading.fixed)


def _flags_asked_about(reading: GoalReading, entry: EntryPoint) -> Iterable[Flag]:
    """Named to be varied, without values: planning asks for them, a search finds its own."""
    subjects = [question.subject for question in reading.questions if question.about == "values"]
    return [flag for name in subjects if (flag := entry.flag(name)) is not None]


def _of_all(entry: EntryPoint, fixed: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for flag in entry.flags:
        if len(found) < _MOST and is_tunable(flag) and flag.name not in fixed:
            spec = around_default(flag)
            if spec is not None:
                found[flag.name] = spec
    if not found:
        known = ", ".join(flag.name for flag in entry.flags if flag.is_settable) or "none"
        raise Invalid(
            f"{entry.path} has no flag that could be searched by itself; it has: {known}.",
            hint="Name flags and values in the goal, or send them as `parameters`.",
            field=("goal",),
        )
    return found


def is_tunable(flag: Flag) -> bool:
    """Whether it changes what is learned. Lengths, seeds, devices and places are not for a search to choose."""
    return flag.is_settable and flag.role is None and not flag.command and is_about_learning(flag)


def around_default(flag: Flag) -> Any:
    """Values to search for a flag that nobody gave any; None where nothing tells what it takes."""
    if flag.type == "bool":
        return [True, False]
    if flag.choices:
        return list(flag.choices)
    default = flag.default
    if flag.type not in ("int", "float") or isinstance(default, bool) or not isinstance(default, int | float):
        return None
    if not math.isfinite(default) or default < 0:
        return None
    return _whole(int(default)) if flag.type == "int" else _real(flag, float(default))


def _whole(default: int) -> dict[str, Any] | None:
    return {"min": max(1, default // 4), "max": default * 4, "log": True, "int": True} if default > 0 else None


def _real(flag: Flag, default: float) -> dict[str, Any] | list[Any]:
    if default == 0:
        return [0, 0.0001, 0.001, 0.01, 0.1] if is_log_scaled(flag) else [0, 0.1, 0.3, 0.5]
    if is_log_scaled(flag):
        return {"min": _tidy(default / _DECADE), "max": _tidy(default * _DECADE), "log": True}
    high = min(0.9, default * 3) if default < 0.5 else default * 2  # most of these are shares of one
    return {"min": _tidy(default / 4), "max": _tidy(max(high, default * 1.5))}


def _of_variation(variation: Variation, entry: EntryPoint) -> Any:
    """A range that the goal spells as two ends is searched between them; a list stays a list."""
    flag = entry.flag(variation.flag)
    values = [value for value in variation.values if isinstance(value, int | float) and not isinstance(value, bool)]
    if variation.scale not in _LENGTHS or flag is None or len(values) < len(variation.values) or len(values) < 3:
        return list(variation.values)
    low, high = min(values), max(values)
    return {"min": low, "max": high, "log": variation.scale == "log" and low > 0, "int": flag.type == "int"}


def _tidy(value: float) -> float:
    return float(f"{value:.6g}")
