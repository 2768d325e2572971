"""A wild loop: experiments one after another towards a goal. Its statuses, the moves between them, and its tries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from labwright.domain.errors import IllegalMove


class WildStatus(StrEnum):
    RUNNING = "running"  # the next step is being prepared
    WAITING = "waiting"  # for runs; an event wakes it, and no model is called until then
    PAUSED = "paused"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"


_ENDS = frozenset({WildStatus.COMPLETED, WildStatus.STOPPED, WildStatus.FAILED})
MOVES: dict[WildStatus, frozenset[WildStatus]] = {
    WildStatus.RUNNING: _ENDS | {WildStatus.WAITING, WildStatus.PAUSED},
    WildStatus.WAITING: _ENDS | {WildStatus.RUNNING, WildStatus.PAUSED},
    WildStatus.PAUSED: _ENDS | {WildStatus.RUNNING},
    WildStatus.COMPLETED: frozenset(),
    WildStatus.STOPPED: frozenset(),
    WildStatus.FAILED: frozenset(),
}
ENDED = _ENDS
AT_WORK = frozenset({WildStatus.RUNNING, WildStatus.WAITING})


class IterationVerdict(StrEnum):
    BASELINE = "baseline"  # the reference for all other tries
    KEEP = "keep"  # better than the previous best by more than noise
    DROP = "drop"
    STOP = "stop"  # its numbers do not count, or nothing is left to try


class IterationStatus(StrEnum):
    PLANNED = "planned"  # recorded; its runs may not exist yet
    RUNNING = "running"
    ENDED = "ended"  # shown, not stored: its runs have ended and it waits for its verdict
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One try: its idea, runs and result. The ids of its runs derive from it, so no run is created twice."""

    number: int
    hypothesis: str
    change: dict[str, Any]  # the difference from its parent
    params: dict[str, Any]  # the complete configuration
    parent: int | None = None  # the iteration that it builds on
    seeds: tuple[int, ...] = ()  # the seeds of its runs, in order
    run_ids: tuple[str, ...] = ()
    made: int = 0  # how many of them were created; a deleted run is not created again
    result: dict[str, Any] | None = None  # mean, std, n, text
    decision: dict[str, Any] | None = None  # verdict, reason
    status: IterationStatus = IterationStatus.PLANNED
    started_at: str
    ended_at: str | None = None

    @property
    def is_open(self) -> bool:
        return self.status is not IterationStatus.DONE

    @property
    def verdict(self) -> IterationVerdict | None:
        return IterationVerdict(self.decision["verdict"]) if self.decision else None

    @property
    def was_refused(self) -> bool:
        """Whether it ended without any run."""
        return not self.is_open and not self.run_ids

    def evolve(self, **facts: Any) -> Iteration:
        return replace(self, **facts)

    def decided(
        self, verdict: IterationVerdict, reason: str, at: str, result: dict[str, Any] | None = None
    ) -> Iteration:
        decision = {"verdict": verdict, "reason": reason}
        return replace(self, status=IterationStatus.DONE, decision=decision, result=result, ended_at=at)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Iteration:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        for name in ("seeds", "run_ids"):
            known[name] = tuple(known.get(name, ()))
        return cls(**{**known, "status": IterationStatus(known["status"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wild:
    id: str
    goal: str
    created_at: str
    created_by: str
    session_id: str | None = None
    status: WildStatus = WildStatus.RUNNING
    status_reason: str = ""
    sweep_id: str
    script: str
    metric: dict[str, Any]  # key, goal
    criterion: dict[str, Any]  # text, threshold, percent
    parameters: dict[str, Any]  # the search space, in the format of a sweep
    fixed: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()  # the seeds that every configuration needs
    gpus: int | None = None
    parallel: int | None = None
    search: str = "rules"  # or the name of the proposing model
    budget: dict[str, Any] = field(default_factory=dict)
    first_budget: dict[str, Any] = field(default_factory=dict)  # the budget before anyone raised it
    used: dict[str, Any] = field(default_factory=dict)  # the latest count
    best: dict[str, Any] | None = None
    baseline: dict[str, Any] | None = None
    iterations: tuple[Iteration, ...] = ()
    steering: tuple[dict[str, Any], ...] = ()  # text, at, taken_in
    protected: tuple[dict[str, Any], ...] = ()  # path, sha256, reason
    notes: tuple[str, ...] = ()  # assumptions and omissions
    asked: str | None = None  # the alert that a paused loop waits for
    report: str | None = None
    ended_at: str | None = None
    running_since: str | None = None
    active_seconds: float = 0.0  # working time before `running_since`

    def move(self, to: WildStatus, **facts: Any) -> Wild:
        """The only way to change a status."""
        if to not in MOVES[self.status]:
            hint = "Start a new loop." if self.status in ENDED else "Resume or stop it."
            raise IllegalMove(f"Wild loop {self.id} is {self.status} and cannot become {to}.", hint=hint)
        return replace(self, status=to, **{"status_reason": "", **facts})

    def evolve(self, **facts: Any) -> Wild:
        """Change facts, never the status."""
        if "status" in facts:
            raise IllegalMove("A status changes only by a move.")
        return replace(self, **facts)

    @property
    def is_ended(self) -> bool:
        return self.status in ENDED

    @property
    def open_iterations(self) -> tuple[Iteration, ...]:
        return tuple(iteration for iteration in self.iterations if iteration.is_open)

    def with_iteration(self, changed: Iteration) -> Wild:
        """Add an iteration, or replace the one with the same number."""
        others = {iteration.number: iteration for iteration in self.iterations}
        return replace(self, iterations=tuple({**others, changed.number: changed}.values()))

    def iteration(self, number: int) -> Iteration:
        return next(iteration for iteration in self.iterations if iteration.number == number)

    def to_dict(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**data, "iterations": [iteration.to_dict() for iteration in self.iterations]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Wild:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        for name in ("seeds", "steering", "protected", "notes"):
            known[name] = tuple(known.get(name, ()))
        known["status"] = WildStatus(known["status"])
        known["iterations"] = tuple(Iteration.from_dict(one) for one in known.get("iterations", ()))
        return cls(**known)
