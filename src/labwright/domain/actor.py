"""Who did something: a person, an agent, a run, or Labwright itself; and what each scope of token may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    PERSON = "person"
    VIEWER = "viewer"
    AGENT = "agent"
    PLANNER = "planner"  # an agent that plans: reads, detects, saves plans
    RUN = "run"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    scope: Scope
    name: str = ""

    @classmethod
    def of(cls, text: str) -> Actor:
        """The way back from its words."""
        scope, _, name = text.partition(":")
        return cls(Scope(scope), name)

    def __str__(self) -> str:
        return f"{self.scope}:{self.name}" if self.name else str(self.scope)


SYSTEM = Actor(Scope.SYSTEM)
PERSON = Actor(Scope.PERSON)
