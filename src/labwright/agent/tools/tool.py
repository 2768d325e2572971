"""What a tool is: a name, what it takes, and a function that calls the same verbs as everybody else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labwright.agent.evidence.evidence import Evidence
from labwright.agent.evidence.sources import look
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.session import EndReason, Session, Wait
from labwright.llm.chat import ToolSpec
from labwright.store.idempotency import IdempotencyKey

Json = dict[str, Any]
LONGEST_COMMAND = 20_000  # characters


@dataclass(slots=True, kw_only=True)
class Deed:
    """One call: for whom it is done, and what it showed on the way."""

    lab: Lab
    session: Session
    actor: Actor  # of agent scope; or the person who approved exactly this call
    approved: bool
    key: str  # the same if the call is carried out again after a kill
    asked_at: str  # likewise
    known: dict[str, Evidence]  # minted earlier in the conversation
    questions_left: int = 0  # that may be asked before there is a plan
    over: threading.Event = field(default_factory=threading.Event)  # set when somebody has stopped the turn
    minted: list[Evidence] = field(default_factory=list)

    def cite(self, kind: str, **source: Any) -> str:
        """Looks, and answers the id under which what it saw may be cited."""
        seen = look(self.lab, kind, source)
        for one in (*self.known.values(), *self.minted):
            if (one.kind, one.source, one.seen) == (kind, source, seen):
                return one.id
        number = self.session.evidence + len(self.minted) + 1
        self.minted.append(Evidence(id=f"E{number}", kind=kind, source=source, seen=seen))
        return self.minted[-1].id

    def once(self, verb: str) -> IdempotencyKey:
        return IdempotencyKey.of(self.key, verb, b"")

    def needs_approval(self, question: str, **meant: str) -> None:
        """`meant`: what arguments stand for now, by id; a name may be another's by the time a person answers."""
        if not self.approved:
            raise NeedsApproval(question, meant)

    def is_own(self, created_by: str, chat_session_id: str | None) -> bool:
        """Whether this very conversation made it."""
        return created_by == str(self.actor) or chat_session_id == self.session.id


class NeedsApproval(Exception):
    """A person has to be asked before this is done."""

    def __init__(self, question: str, meant: dict[str, str]) -> None:
        super().__init__(question)
        self.meant = meant


class EndsTurn(Exception):
    """The turn is to end here, with this answer of the tool."""

    def __init__(self, why: EndReason, answer: Json, *, wait: Wait | None = None, **told: Any) -> None:
        super().__init__()
        self.why, self.answer, self.wait, self.told = why, answer, wait, told


class Waits(EndsTurn):
    """The turn is to end here, and an event to begin the next."""

    def __init__(self, wait: Wait, answer: Json) -> None:
        super().__init__(EndReason.WAITING, answer, wait=wait, wait_for=wait.to_dict())


class Compiling(Exception):
    """A plan is being made. Once it rests, the same call is carried out again and tells what became of it."""

    def __init__(self, plan_id: str, since: int) -> None:
        super().__init__(plan_id)
        self.plan_id, self.since = plan_id, since  # the number of the newest event before it began


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    description: str
    do: Callable[..., Json]
    takes: Json = field(default_factory=dict)  # properties, as JSON Schema
    needs: tuple[str, ...] = ()
    writes: bool = False
    plans: bool = False  # what it writes is a plan and nothing else

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, schema=self.schema)

    @property
    def schema(self) -> Json:
        return {
            "type": "object",
            "properties": self.takes,
            "required": list(self.needs),
            "additionalProperties": False,
        }


def text(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def whole(description: str, least: int, most: int) -> Json:
    return {"type": "integer", "description": description, "minimum": least, "maximum": most}


def yes_or_no(description: str) -> Json:
    return {"type": "boolean", "description": description}


def several(description: str, **items: Any) -> Json:
    return {"type": "array", "description": description, "items": items or {"type": "string"}, "maxItems": 200}


def one_of(description: str, *choices: str) -> Json:
    return {"type": "string", "description": description, "enum": list(choices)}


def anything(description: str) -> Json:
    """Open in so many words: OpenAI's wire closes an object that is silent about it, and no name would do."""
    return {"type": "object", "description": description, "additionalProperties": True}
