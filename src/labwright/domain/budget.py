"""What a sweep may use, and whether one more run still fits. Pure: who counts is the keeper's business."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What a sweep has used, and what it has promised to runs that are queued or at work."""

    runs: int
    gpu_seconds: float
    promised_gpu_seconds: float
    wall_seconds: float
    run_seconds: float  # how long one more is expected to take; 0 while nothing is known
    gpus: int  # of one run


def what_is_short(budget: dict[str, Any], ledger: Ledger) -> tuple[str, str] | None:
    """Which part of the budget one more run would overrun, with words for it; None if it fits."""
    if "runs" in budget and ledger.runs + 1 > budget["runs"]:
        return "runs", f"{ledger.runs} runs were started and the budget is {budget['runs']:g}"
    if "gpu_hours" in budget:
        used = ledger.gpu_seconds + ledger.promised_gpu_seconds
        wanted = used + ledger.run_seconds * ledger.gpus
        if wanted > budget["gpu_hours"] * _HOUR or used >= budget["gpu_hours"] * _HOUR:
            return "gpu_hours", (
                f"{ledger.gpu_seconds / _HOUR:.3g} GPU-hours are used, running runs may take "
                f"{ledger.promised_gpu_seconds / _HOUR:.3g} more, and the budget is {budget['gpu_hours']:g}"
            )
    if "wall_seconds" in budget and ledger.wall_seconds + ledger.run_seconds > budget["wall_seconds"]:
        return "wall_seconds", (
            f"it has been at work for {ledger.wall_seconds:.0f} s, a run takes about {ledger.run_seconds:.0f} s, "
            f"and the budget is {budget['wall_seconds']:g} s"
        )
    return None


def raised(budget: dict[str, Any], first: dict[str, Any], part: str) -> dict[str, Any]:
    """By as much as it was at first."""
    return {**budget, part: budget[part] + first.get(part, budget[part])}
