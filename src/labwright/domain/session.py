"""Conversations: sessions and their pieces, approval requests, suggestions and memories.

The pieces are the truth: they are only appended, and every prompt for a model is built from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Conflict, Forbidden


class Mode(StrEnum):
    AGENT = "agent"
    PLAN = "plan"
    WILD = "wild"


class SessionStatus(StrEnum):
    IDLE = "idle"  # it waits for a message or an event
    WORKING = "working"  # a turn is in progress
    ASKING = "asking"  # the turn continues when a person has answered


class PieceKind(StrEnum):
    USER = "user"  # a message of the user
    WAKE = "wake"  # an awaited event happened
    TEXT = "text"  # part of a reply, as it arrives
    THINKING = "thinking"
    CALL = "call"  # a tool call
    RESULT = "result"  # the result of a tool call
    EVIDENCE = "evidence"  # numbers that a reply may cite, with their sources
    APPROVAL = "approval"  # a request to a person, or the answer
    PLAN = "plan"  # the progress of planning
    MESSAGE = "message"  # a complete reply of the model, with the faults in its numbers
    SUMMARY = "summary"  # a summary of older turns for the model; the log stays complete
    SUGGESTION = "suggestion"  # a suggested improvement and its status
    NOTICE = "notice"  # an information for the user
    END = "end"  # the end of a turn and its reason


class EndReason(StrEnum):
    DONE = "done"
    WAITING = "waiting"  # an event wakes the session; no model is called until then
    QUESTIONS = "questions"  # the next message answers the agent's questions
    STOPPED = "stopped"
    FAILED = "failed"
    ROUNDS = "rounds"  # too many rounds of tool calls in one turn
    DENIED = "denied"  # a person denied the request


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    session_id: str
    seq: int
    turn: int
    kind: PieceKind
    time: str
    data: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What wakes a session: the end of runs or of a sweep."""

    run_ids: tuple[str, ...] = ()
    sweep_id: str | None = None
    any_of_them: bool = False
    note: str = ""  # what the agent wants to do then

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Wait:
        return cls(**{**data, "run_ids": tuple(data["run_ids"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    title: str
    created_at: str
    created_by: str
    updated_at: str
    mode: Mode = Mode.AGENT
    status: SessionStatus = SessionStatus.IDLE
    turn: int = 0
    last_seq: int = 0  # the number of its newest piece
    evidence: int = 0  # how many evidence pieces exist
    waits: tuple[Wait, ...] = ()

    def begin_turn(self, at: str, mode: Mode | None = None) -> Session:
        if self.status is SessionStatus.WORKING:
            raise Conflict(f"Session {self.id} is working.", hint="Wait for its reply, or stop it first.")
        if self.status is SessionStatus.ASKING:
            raise Conflict(
                f"Session {self.id} is waiting for a person's answer.",
                hint="Answer it with `labwright approvals`, or stop the session.",
            )
        return replace(self, status=SessionStatus.WORKING, turn=self.turn + 1, updated_at=at, mode=mode or self.mode)

    def evolve(self, **facts: Any) -> Session:
        return replace(self, **facts)

    def to_dict(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**data, "waits": [wait.to_dict() for wait in self.waits]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Session:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["mode"] = Mode(known["mode"])
        known["status"] = SessionStatus(known["status"])
        known["waits"] = tuple(Wait.from_dict(wait) for wait in known.get("waits", ()))
        return cls(**known)


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    WITHDRAWN = "withdrawn"  # no longer needed: the session was stopped or deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A request of an agent that only a person can answer. The answer is final."""

    id: str
    session_id: str
    turn: int
    call_id: str  # the tool call that waits for it; empty: the turn itself waits
    question: str
    action: dict[str, Any] = field(default_factory=dict)  # the tool and its arguments, as they will be executed
    created_at: str
    status: ApprovalStatus = ApprovalStatus.PENDING
    reason: str = ""
    answered_by: str | None = None
    answered_at: str | None = None

    def answered(self, approved: bool, reason: str, actor: Actor, at: str) -> ApprovalRequest:
        if actor.scope is not Scope.PERSON:
            raise Forbidden("Only a person can answer an agent's request.")
        if self.status is not ApprovalStatus.PENDING:
            raise Conflict(f"Approval {self.id} is already {self.status}.", hint="An answer is final.")
        status = ApprovalStatus.APPROVED if approved else ApprovalStatus.DENIED
        return replace(self, status=status, reason=reason, answered_by=str(actor), answered_at=at)

    def withdrawn(self, at: str) -> ApprovalRequest:
        return replace(self, status=ApprovalStatus.WITHDRAWN, answered_at=at)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ApprovalRequest:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**{**known, "status": ApprovalStatus(known["status"])})


class SuggestionStatus(StrEnum):
    PENDING = "pending"
    ACCEPTED = "accepted"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """An improvement that an assistant suggests. A person accepts or dismisses it."""

    id: str
    text: str  # the suggestion in the assistant's words
    template: str = ""  # a file that belongs to it, such as a sweep or a script
    status: SuggestionStatus = SuggestionStatus.PENDING
    accepted_into: str = ""  # the skill or the project file
    answered_by: str | None = None

    def answered(self, status: SuggestionStatus, by: str, into: str = "") -> Suggestion:
        if self.status is not SuggestionStatus.PENDING:
            raise Conflict(f"Suggestion {self.id} is already {self.status}.", hint="There is nothing left to do.")
        return replace(self, status=status, answered_by=by, accepted_into=into)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Suggestion:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**{**known, "status": SuggestionStatus(known["status"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A note for later conversations. A note of an agent is a proposal until a person accepts it."""

    id: str
    text: str
    created_at: str
    created_by: str
    updated_at: str
    accepted: bool  # only accepted notes reach other sessions: a hostile log must not reach them all
    session_id: str | None = None  # the session whose agent wrote it

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Memory:
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})
