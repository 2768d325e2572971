"""Who did something: a person, an agent, a run or Labwright itself, and the scopes of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    PERSON = "person"
    VIEWER = "viewer"
    AGENT = "agent"
    PLANNER = "planner"  # an agent that plans: it reads, detects and saves plans
    RUN = "run"
    ANSWER = "answer"  # may answer one question of an agent, nothing else
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    scope: Scope
    name: str = ""

    @classmethod
    def of(cls, text: str) -> Actor:
        """Parse the text form of an actor."""
        scope, _, name = text.partition(":")
        return cls(Scope(scope), name)

    def __str__(self) -> str:
        return f"{self.scope}:{self.name}" if self.name else str(self.scope)


SYSTEM = Actor(Scope.SYSTEM)
PERSON = Actor(Scope.PERSON)
