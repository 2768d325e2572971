"""A conversation: its statuses, and the numbered pieces that everything said and done in it consists of.

The pieces are the truth: they are only ever appended, and what a model is told is made from them anew each time.
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
    IDLE = "idle"  # it is somebody's turn to speak, or an event's
    WORKING = "working"  # a turn is under way
    ASKING = "asking"  # the turn goes on when a person has answered


class PieceKind(StrEnum):
    USER = "user"  # what a person said
    WAKE = "wake"  # what was waited for has happened
    TEXT = "text"  # part of an answer, as it arrives
    THINKING = "thinking"
    CALL = "call"  # a tool is called
    RESULT = "result"  # what it answered
    EVIDENCE = "evidence"  # numbers that an answer may cite, with where they come from
    APPROVAL = "approval"  # a person is asked, or has answered
    PLAN = "plan"  # how far the making of a plan is
    MESSAGE = "message"  # an answer of the model, whole, with what is wrong with its numbers
    SUMMARY = "summary"  # of older turns, for the model; the log itself stays whole
    SUGGESTION = "suggestion"  # how the work could go better, and what became of that
    NOTICE = "notice"  # something worth knowing, in words
    END = "end"  # of a turn, and why


class EndReason(StrEnum):
    DONE = "done"
    WAITING = "waiting"  # an event wakes the session; until then no model is asked
    QUESTIONS = "questions"  # the person was asked, and the next thing that is said is the answer
    STOPPED = "stopped"
    FAILED = "failed"
    ROUNDS = "rounds"  # too many rounds of tools in one turn
    DENIED = "denied"  # a person did not allow what it needed


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
    """What wakes a session: runs that have ended, or a sweep that no longer runs."""

    run_ids: tuple[str, ...] = ()
    sweep_id: str | None = None
    any_of_them: bool = False
    note: str = ""  # what is to be done then, in the words of whoever waits

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
    last_seq: int = 0  # of its newest piece
    evidence: int = 0  # how many pieces of evidence were minted
    waits: tuple[Wait, ...] = ()

    def begin_turn(self, at: str, mode: Mode | None = None) -> Session:
        if self.status is SessionStatus.WORKING:
            raise Conflict(f"Session {self.id} is at work.", hint="Wait for its answer, or stop it first.")
        if self.status is SessionStatus.ASKING:
            raise Conflict(
                f"Session {self.id} waits for an answer of a person.",
                hint="Answer it (`labwright approvals`), or stop the session.",
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
    WITHDRAWN = "withdrawn"  # nobody waits for it any more: the session was stopped or deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    id: str
    session_id: str
    turn: int
    call_id: str  # which call of a tool waits for it; empty: the turn itself does
    question: str
    action: dict[str, Any] = field(default_factory=dict)  # the tool and its arguments, as they will be carried out
    created_at: str
    status: ApprovalStatus = ApprovalStatus.PENDING
    reason: str = ""
    answered_by: str | None = None
    answered_at: str | None = None

    def answered(self, approved: bool, reason: str, actor: Actor, at: str) -> ApprovalRequest:
        if actor.scope is not Scope.PERSON:
            raise Forbidden("Only a person answers what an agent asks for.")
        if self.status is not ApprovalStatus.PENDING:
            raise Conflict(f"Approval {self.id} is {self.status} already.", hint="An answer is final.")
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
    id: str
    text: str  # what is suggested, as it was said
    template: str = ""  # a file that goes with it, such as a sweep or a script
    status: SuggestionStatus = SuggestionStatus.PENDING
    accepted_into: str = ""  # the skill, or the file of the project
    answered_by: str | None = None

    def answered(self, status: SuggestionStatus, by: str, into: str = "") -> Suggestion:
        if self.status is not SuggestionStatus.PENDING:
            raise Conflict(f"Suggestion {self.id} is {self.status} already.", hint="There is nothing left to do.")
        return replace(self, status=status, answered_by=by, accepted_into=into)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Suggestion:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**{**known, "status": SuggestionStatus(known["status"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    id: str
    text: str
    created_at: str
    created_by: str
    updated_at: str
    accepted: bool  # only then other sessions are told it: else a hostile log could speak to all of them
    session_id: str | None = None  # whose agent noted it

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Memory:
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})
