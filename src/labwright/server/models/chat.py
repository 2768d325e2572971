"""Conversations, approvals, suggestions and memories over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from labwright.agent.conversation.suggestions import SKILL
from labwright.domain.session import Mode, PieceKind, SessionStatus, SuggestionStatus
from labwright.server.models.fields import NOT_BLANK, Id, In, Name, Text

Said = Annotated[Text, Field(max_length=200_000, pattern=NOT_BLANK)]
Note = Annotated[Text, Field(max_length=4000, pattern=NOT_BLANK)]


class SessionIn(In):
    title: Name | None = Field(None, description="default: taken from the first message")
    mode: Mode = Mode.AGENT


class SessionPatch(In):
    title: Name | None = None
    mode: Mode | None = None


class WaitOut(BaseModel):
    run_ids: list[str]
    sweep_id: str | None
    any_of_them: bool
    note: str


class SpentOut(BaseModel):
    calls: int
    tokens_in: int
    tokens_out: int
    cache_read: int
    cost_usd: float  # for calls with a known price
    unpriced_calls: int


class SessionOut(BaseModel):
    id: str
    title: str
    mode: Mode
    status: SessionStatus
    turn: int
    last_seq: int
    waits: list[WaitOut]
    created_at: str
    created_by: str
    updated_at: str
    spent: SpentOut = Field(description="tokens and cost so far")


class PieceOut(BaseModel):
    session_id: str
    seq: int
    turn: int
    kind: PieceKind
    time: str
    data: dict[str, Any]


class ChatIn(In):
    session_id: Id | None = Field(None, description="default: a new session")
    message: Said
    mode: Mode | None = Field(None, description="`agent`, `plan` or `wild`, from this turn on")


class ApprovalAnswer(In):
    approved: bool
    reason: Annotated[Text, Field(max_length=4000)] = ""


class SuggestionOut(BaseModel):
    id: str
    session_id: str
    text: str
    template: str
    status: SuggestionStatus
    accepted_into: str
    answered_by: str | None


class SuggestionAccept(In):
    into: Literal["skill", "template"] = "skill"
    name: Annotated[Text, Field(max_length=100)] | None = Field(
        None,
        description=f"name of the skill (default `{SKILL}`), or of the file in `templates/`, which a template requires",
    )


class MemoryIn(In):
    text: Note


class MemoryPatch(In):
    text: Note | None = None
    accepted: bool | None = Field(None, description="whether new conversations get it")
