"""Conversations, tools and modes. `AgentSession` belongs to the Python API of planning, which needs no server."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class AgentSession:
    """The user's messages to `PlanMode`, in order. Conversations with a server are in `conversation/sessions.py`."""

    said: list[str] = field(default_factory=list)  # by the user
