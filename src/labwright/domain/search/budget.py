"""What a sweep may use, and whether one more run still fits. Pure: who counts is the worker's business."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from labwright.domain.errors import Conflict

_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUsage:
    """What a sweep has used, and what it has promised to runs that are queued or at work."""

    runs: int
    gpu_seconds: float
    promised_gpu_seconds: float
    wall_seconds: float
    run_seconds: float  # how long one more is expected to take; 0 while nothing is known
    gpus: int  # of one run


Shortage = tuple[str, str]  # which part of the budget, and words for it


def shortage(budget: dict[str, Any], ledger: BudgetUsage) -> Shortage | None:
    """Which part of the budget one more run would overrun, with words for it; None if it fits."""
    part = _short_part(budget, ledger)
    return (part, _words(part, budget, ledger)) if part else None


def lasting_shortage(budget: dict[str, Any], ledger: BudgetUsage) -> Shortage | None:
    """Which part one more run would overrun even if those at work ended now, and took nothing of what was promised."""
    part = _short_part(budget, replace(ledger, promised_gpu_seconds=0.0))
    return (part, _words(part, budget, ledger)) if part else None


def used_up(budget: dict[str, Any], ledger: BudgetUsage) -> Shortage | None:
    """Which part of it is gone already, whatever else was promised and whether or not there is more to do."""
    spent = replace(ledger, runs=ledger.runs - 1, promised_gpu_seconds=0.0, run_seconds=0.0)
    part = _short_part(budget, spent)
    return (part, _words(part, budget, ledger)) if part else None


def refuse_shortage(whose: str, resume: str, flags: dict[str, str], short: Shortage | None) -> None:
    """What would pause again at once is not resumed. `resume` is the command that takes `flags`."""
    if short is None:
        return
    part, words = short
    raise Conflict(
        f"{whose} cannot go on, its budget does not allow another run: {words}.",
        hint=f"Raise it: {resume} {flags[part]}, or send `budget` with a larger `{part}`.",
    )


def _short_part(budget: dict[str, Any], ledger: BudgetUsage) -> str | None:
    if "runs" in budget and ledger.runs + 1 > budget["runs"]:
        return "runs"
    if "gpu_hours" in budget:
        used = ledger.gpu_seconds + ledger.promised_gpu_seconds
        wanted = used + ledger.run_seconds * ledger.gpus
        if wanted > budget["gpu_hours"] * _HOUR or used >= budget["gpu_hours"] * _HOUR:
            return "gpu_hours"
    if "wall_seconds" in budget and ledger.wall_seconds + ledger.run_seconds > budget["wall_seconds"]:
        return "wall_seconds"
    return None


def _words(part: str, budget: dict[str, Any], ledger: BudgetUsage) -> str:
    if part == "runs":
        return f"{ledger.runs} runs were started and the budget is {budget['runs']:g}"
    if part == "gpu_hours":
        another = ledger.run_seconds * ledger.gpus / _HOUR
        return (
            f"{ledger.gpu_seconds / _HOUR:.3g} GPU-hours are used, running runs may take "
            f"{ledger.promised_gpu_seconds / _HOUR:.3g} more, another one takes about {another:.3g}, "
            f"and the budget is {budget['gpu_hours']:g}"
        )
    return (
        f"it has been at work for {ledger.wall_seconds:.0f} s, a run takes about {ledger.run_seconds:.0f} s, "
        f"and the budget is {budget['wall_seconds']:g} s"
    )


def needed_budget(part: str, ledger: BudgetUsage) -> float:
    """What the budget has to be for one more run; times in whole seconds, with one to spare."""
    if part == "runs":
        return ledger.runs + 1
    if part == "gpu_hours":
        seconds = ledger.gpu_seconds + ledger.promised_gpu_seconds + ledger.run_seconds * ledger.gpus
        return (math.ceil(seconds) + 1) / _HOUR
    return math.ceil(ledger.wall_seconds + ledger.run_seconds) + 1


def raise_budget(budget: dict[str, Any], first: dict[str, Any], part: str, least: float = 0) -> dict[str, Any]:
    """By as much as it was at first, and to `least` where that is more."""
    return {**budget, part: max(budget[part] + first.get(part, budget[part]), least)}
