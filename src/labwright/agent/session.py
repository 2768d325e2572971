"""A conversation: what was said, in order."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class AgentSession:
    said: list[str] = field(default_factory=list)  # by the person
