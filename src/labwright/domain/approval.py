"""What an agent asked a person for. Only a person answers, and an answer is final."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Conflict, Forbidden


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    WITHDRAWN = "withdrawn"  # nobody waits for it any more: the session was stopped or deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
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

    def answered(self, approved: bool, reason: str, actor: Actor, at: str) -> Approval:
        if actor.scope is not Scope.PERSON:
            raise Forbidden("Only a person answers what an agent asks for.")
        if self.status is not ApprovalStatus.PENDING:
            raise Conflict(f"Approval {self.id} is {self.status} already.", hint="An answer is final.")
        status = ApprovalStatus.APPROVED if approved else ApprovalStatus.DENIED
        return replace(self, status=status, reason=reason, answered_by=str(actor), answered_at=at)

    def withdrawn(self, at: str) -> Approval:
        return replace(self, status=ApprovalStatus.WITHDRAWN, answered_at=at)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Approval:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**{**known, "status": ApprovalStatus(known["status"])})
