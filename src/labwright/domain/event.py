"""Events: one stored, ordered stream of facts with their actor. Hints are not stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class EventType(StrEnum):
    RUN_CREATED = "run.created"
    RUN_STATUS = "run.status"
    RUN_UPDATED = "run.updated"
    RUN_DELETED = "run.deleted"
    RUN_NOTICE = "run.notice"
    SWEEP_CREATED = "sweep.created"
    SWEEP_STATUS = "sweep.status"
    SWEEP_UPDATED = "sweep.updated"
    PLAN_CREATED = "plan.created"
    PLAN_UPDATED = "plan.updated"
    PLAN_STATUS = "plan.status"
    PLAN_DELETED = "plan.deleted"
    PLAN_NODE = "plan.node"
    PLAN_STEP = "plan.step"
    SKILL_SAVED = "skill.saved"
    SKILL_DELETED = "skill.deleted"
    ALERT_RAISED = "alert.raised"
    ALERT_UPDATED = "alert.updated"
    ALERT_RESOLVED = "alert.resolved"
    SESSION_CREATED = "session.created"
    SESSION_STATUS = "session.status"
    SESSION_UPDATED = "session.updated"
    SESSION_DELETED = "session.deleted"
    APPROVAL_ASKED = "approval.asked"
    APPROVAL_ANSWERED = "approval.answered"
    SUGGESTION_MADE = "suggestion.made"
    SUGGESTION_ANSWERED = "suggestion.answered"
    MEMORY_SAVED = "memory.saved"
    MEMORY_DELETED = "memory.deleted"
    VIEW_SAVED = "view.saved"
    VIEW_DELETED = "view.deleted"
    SETTINGS_CHANGED = "settings.changed"
    WILD_CHANGED = "wild.changed"
    WILD_ITERATION = "wild.iteration"
    CLUSTER_CHANGED = "cluster.changed"
    SERVER_STARTED = "server.started"
    GC_DONE = "gc.done"


# Conversations with assistants. Agents must not read these events.
OF_CONVERSATIONS = frozenset(
    kind for kind in EventType if kind.partition(".")[0] in ("session", "approval", "suggestion", "memory")
)
CHAT_HINT = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    type: EventType
    actor: str
    time: str
    run_id: str | None = None
    sweep_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Hint:
    """A signal that something grew and clients should fetch the new part. Coalesced, never stored."""

    topic: str
    run_id: str = ""
    session_id: str = ""
