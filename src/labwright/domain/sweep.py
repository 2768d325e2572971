"""A sweep: runs that answer one question. Its statuses, the one table of moves between them, and its facts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from labwright.domain.errors import IllegalMove


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


MOVES: dict[SweepStatus, frozenset[SweepStatus]] = {
    SweepStatus.DRAFT: frozenset({SweepStatus.RUNNING, SweepStatus.STOPPED}),
    SweepStatus.RUNNING: frozenset({SweepStatus.PAUSED, SweepStatus.COMPLETED, SweepStatus.STOPPED}),
    SweepStatus.PAUSED: frozenset({SweepStatus.RUNNING, SweepStatus.COMPLETED, SweepStatus.STOPPED}),
    # retry-failed and extend open it again.
    SweepStatus.COMPLETED: frozenset({SweepStatus.RUNNING}),
    SweepStatus.STOPPED: frozenset(),
}

ENDED = frozenset({SweepStatus.COMPLETED, SweepStatus.STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    id: str
    name: str
    created_at: str
    created_by: str
    goal: str = ""
    method: SweepMethod = SweepMethod.WILD
    status: SweepStatus = SweepStatus.RUNNING
    status_reason: str = ""
    chat_session_id: str | None = None
    plan_id: str | None = None  # the plan that it executes a step of
    parallel: int | None = None
    base_command: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    max_runs: int | None = None
    metric: dict[str, Any] | None = None  # key, goal, use
    early_stop: dict[str, Any] | None = None
    budget: dict[str, Any] = field(default_factory=dict)
    first_budget: dict[str, Any] = field(default_factory=dict)  # the budget before anyone raised it
    sampling_seed: int = 0
    template: dict[str, Any] = field(default_factory=dict)  # the fields that all of its runs share
    best: dict[str, Any] | None = None
    best_at: int = -1  # how many runs had finished when `best` was found
    warnings: tuple[str, ...] = ()
    rungs: dict[str, int] = field(default_factory=dict)  # halving: the step of each running run's last check
    failures_accepted: int = 0  # how many runs had failed when a person resumed it
    started_at: str | None = None
    ended_at: str | None = None
    running_since: str | None = None
    active_seconds: float = 0.0  # running time before `running_since`

    def move(self, to: SweepStatus, **facts: Any) -> Sweep:
        """The only way to change a status."""
        if to not in MOVES[self.status]:
            raise IllegalMove(f"Sweep {self.id} is {self.status} and cannot become {to}.", hint=_HINTS[self.status])
        return replace(self, status=to, **{"status_reason": "", **facts})

    def evolve(self, **facts: Any) -> Sweep:
        """Change facts, never the status."""
        if "status" in facts:
            raise IllegalMove("A status changes only by a move.")
        return replace(self, **facts)

    @property
    def is_wild(self) -> bool:
        return self.method is SweepMethod.WILD

    @property
    def runs_per_configuration(self) -> int:
        return max(1, len(self.seeds))

    @property
    def is_rationed(self) -> bool:
        """Whether runs are queued a few at a time, so that the budget can hold the rest back."""
        return bool(self.budget)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sweep:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        for name in ("seeds", "warnings"):
            known[name] = tuple(known.get(name, ()))
        return replace(
            cls(**known),
            method=SweepMethod(data.get("method", SweepMethod.WILD)),
            status=SweepStatus(data.get("status", SweepStatus.RUNNING)),
        )


_HINTS = {
    SweepStatus.DRAFT: "Start it first.",
    SweepStatus.RUNNING: "It is already running.",
    SweepStatus.PAUSED: "Resume or stop it.",
    SweepStatus.COMPLETED: "Use extend or retry-failed to run more.",
    SweepStatus.STOPPED: "Create a new sweep.",
}
