"""Conversations and modes. `AgentSession` is the Python surface of planning, which needs no server."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class AgentSession:
    """What was said to `PlanMode`, in order; conversations with a server are in `sessions.py`."""

    said: list[str] = field(default_factory=list)  # by the person
