"""The result of reading a goal: plain values, with everything that was not understood."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One flag and the values to try."""

    flag: str
    values: tuple[Any, ...]
    scale: str = "listed"  # listed, log, linear, switch
    words: str = ""  # the part of the goal that names it
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricGoal:
    """The metric that ranks the results."""

    metric: str
    direction: str  # maximize, minimize
    assumed: str = ""  # the reason, if the goal does not name the metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    about: str  # script, vary, values, metric, seeds
    text: str
    suggestions: tuple[str, ...] = ()
    subject: str = ""  # the flag whose values are needed, or the requested flag that does not exist


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    runs: int | None = None
    seconds: float | None = None
    parallel: int | None = None
    gpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalReading:
    text: str
    script: str | None = None
    variations: tuple[Variation, ...] = ()
    fixed: dict[str, Any] = field(default_factory=dict)
    held: Variation | None = None  # the single configuration, if only the seeds vary
    seeds: tuple[int, ...] = ()
    goal: MetricGoal | None = None
    guards: tuple[MetricGoal, ...] = ()  # metrics that must not get worse
    baseline: dict[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    questions: tuple[Question, ...] = ()  # three at most; a plan needs all of them answered
    warnings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()  # words and numbers that no rule understood

    @property
    def run_count(self) -> int:
        """The size of the grid, seeds included."""
        return prod(len(variation.values) for variation in self.variations) * max(1, len(self.seeds))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "run_count": self.run_count}
