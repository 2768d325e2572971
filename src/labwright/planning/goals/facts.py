"""What was read from a goal: plain values, with what was not understood beside them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One flag and the values to try."""

    flag: str
    values: tuple[Any, ...]
    scale: str = "listed"  # listed, log, linear, switch, all
    words: str = ""  # where in the goal it was read
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """By what the results are judged."""

    metric: str
    direction: str  # maximize, minimize
    assumed: str = ""  # why it was taken, where the goal does not name it


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    about: str  # script, vary, values, metric, seeds, language
    text: str
    suggestions: tuple[str, ...] = ()
    subject: str = ""  # the flag whose values are asked for, or what was to be varied and cannot be


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
    held: Variation | None = None  # one value that stands for the one configuration, where only seeds vary
    seeds: tuple[int, ...] = ()
    goal: Goal | None = None
    guards: tuple[Goal, ...] = ()  # must not get worse
    baseline: dict[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    questions: tuple[Question, ...] = ()  # three at most; with one open, nothing may be planned
    warnings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()  # words and numbers that no rule took

    @property
    def run_count(self) -> int:
        """The size of the grid, seeds included."""
        return prod(len(variation.values) for variation in self.variations) * max(1, len(self.seeds))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "run_count": self.run_count}
