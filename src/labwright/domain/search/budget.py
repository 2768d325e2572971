"""What a sweep may use, and whether one more run fits into the budget. Pure: the caller counts the usage."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from labwright.domain.errors import Conflict

_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUsage:
    """What a sweep has used, and what it has reserved for runs that are queued or active."""

    runs: int
    gpu_seconds: float
    promised_gpu_seconds: float
    wall_seconds: float
    run_seconds: float  # expected duration of one more run; 0 if unknown
    gpus: int  # GPUs of one run


Shortage = tuple[str, str]  # the part of the budget, and a message


def shortage(budget: dict[str, Any], usage: BudgetUsage) -> Shortage | None:
    """Return the part of the budget that one more run would exceed, or None if it fits."""
    part = _short_part(budget, usage)
    return (part, _message(part, budget, usage)) if part else None


def lasting_shortage(budget: dict[str, Any], usage: BudgetUsage) -> Shortage | None:
    """Return the part that one more run would exceed even if all active runs ended now."""
    part = _short_part(budget, replace(usage, promised_gpu_seconds=0.0))
    return (part, _message(part, budget, usage)) if part else None


def used_up(budget: dict[str, Any], usage: BudgetUsage) -> Shortage | None:
    """Return the part that is already used up, without reserved time and without another run."""
    spent = replace(usage, runs=usage.runs - 1, promised_gpu_seconds=0.0, run_seconds=0.0)
    part = _short_part(budget, spent)
    return (part, _message(part, budget, usage)) if part else None


def refuse_shortage(whose: str, resume: str, flags: dict[str, str], short: Shortage | None) -> None:
    """Raise Conflict if a resumed sweep would pause again immediately. `resume` is the command that takes `flags`."""
    if short is None:
        return
    part, message = short
    raise Conflict(
        f"{whose} cannot resume: its budget does not allow another run ({message}).",
        hint=f"Raise the budget: {resume} {flags[part]}, or send `budget` with a larger `{part}`.",
    )


def _short_part(budget: dict[str, Any], usage: BudgetUsage) -> str | None:
    if "runs" in budget and usage.runs + 1 > budget["runs"]:
        return "runs"
    if "gpu_hours" in budget:
        used = usage.gpu_seconds + usage.promised_gpu_seconds
        expected = used + usage.run_seconds * usage.gpus
        if expected > budget["gpu_hours"] * _HOUR or used >= budget["gpu_hours"] * _HOUR:
            return "gpu_hours"
    if "wall_seconds" in budget and usage.wall_seconds + usage.run_seconds > budget["wall_seconds"]:
        return "wall_seconds"
    return None


def _message(part: str, budget: dict[str, Any], usage: BudgetUsage) -> str:
    if part == "runs":
        return f"{usage.runs} runs were started and the budget is {budget['runs']:g}"
    if part == "gpu_hours":
        another = usage.run_seconds * usage.gpus / _HOUR
        return (
            f"{usage.gpu_seconds / _HOUR:.3g} GPU-hours are used, running runs may use "
            f"{usage.promised_gpu_seconds / _HOUR:.3g} more, another run needs about {another:.3g}, "
            f"and the budget is {budget['gpu_hours']:g}"
        )
    return (
        f"it has been running for {usage.wall_seconds:.0f} s, a run takes about {usage.run_seconds:.0f} s, "
        f"and the budget is {budget['wall_seconds']:g} s"
    )


def needed_budget(part: str, usage: BudgetUsage) -> float:
    """Return the budget that one more run needs. Times are whole seconds plus one."""
    if part == "runs":
        return usage.runs + 1
    if part == "gpu_hours":
        seconds = usage.gpu_seconds + usage.promised_gpu_seconds + usage.run_seconds * usage.gpus
        return (math.ceil(seconds) + 1) / _HOUR
    return math.ceil(usage.wall_seconds + usage.run_seconds) + 1


def raise_budget(budget: dict[str, Any], first: dict[str, Any], part: str, least: float = 0) -> dict[str, Any]:
    """Raise one part by its first value, and to at least `least`."""
    return {**budget, part: max(budget[part] + first.get(part, budget[part]), least)}
