"""Runs that answer one question."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any


class SweepMethod(StrEnum):
    WILD = "wild"
    GRID = "grid"
    RANDOM = "random"
    ADAPTIVE = "adaptive"


class SweepStatus(StrEnum):
    DRAFT = "draft"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    id: str
    name: str
    created_at: str
    created_by: str
    goal: str = ""
    method: SweepMethod = SweepMethod.WILD
    status: SweepStatus = SweepStatus.RUNNING
    chat_session_id: str | None = None
    parallel: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    metric: dict[str, Any] | None = None
    budget: dict[str, Any] = field(default_factory=dict)
    best: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sweep:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return replace(
            cls(**known),
            method=SweepMethod(data.get("method", SweepMethod.WILD)),
            status=SweepStatus(data.get("status", SweepStatus.RUNNING)),
        )
