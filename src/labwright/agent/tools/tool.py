"""What a tool is: a name, a JSON schema, and a function that calls the same verbs as HTTP does.

A tool is called in a conversation, or outside of one by another assistant (`outside.py`). In a conversation a person
can be asked for approval, results carry evidence ids, and waiting ends the turn. Outside, a call that needs approval is
refused, there are no evidence ids, and a wait has a time limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labwright.agent.evidence.evidence import Evidence, Reading
from labwright.agent.evidence.sources import look
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.ids import PLAN, SWEEP
from labwright.domain.session import EndReason, Session, Wait
from labwright.llm.chat import ToolSpec
from labwright.services.references import full_id
from labwright.store.idempotency import IdempotencyKey

Json = dict[str, Any]
LONGEST_COMMAND = 20_000  # characters
RUN_REFERENCE = "the run's id, the beginning of it, its name, or `last`"
SWEEP_REFERENCE = "the sweep's id, the beginning of it, its name, or `last`"
PLAN_REFERENCE = "the plan's id, the beginning of it, its title, or `last`"


@dataclass(slots=True, kw_only=True)
class ToolContext:
    """One call of a tool: on whose behalf it is made, and the evidence that it has collected."""

    lab: Lab
    actor: Actor  # of agent scope, or the person who approved exactly this call
    proposer: str  # who proposes experiments in wild loops
    asked_at: str  # when the call was made; the same if it is repeated after a kill
    session: Session | None = None  # the conversation, if the call is part of one
    key: str = ""  # idempotency key: the same if the call is repeated; empty if there is none
    body: bytes = b""  # of the request; the same key with another body is refused
    approved: bool = False
    known: dict[str, Evidence] = field(default_factory=dict)  # collected earlier in the conversation
    questions_left: int = 0  # that may be asked before there is a plan
    over: threading.Event = field(default_factory=threading.Event)  # set when somebody stops the turn
    minted: list[Evidence] = field(default_factory=list)

    @property
    def session_id(self) -> str | None:
        return self.session.id if self.session else None

    def sweep_id(self, reference: str) -> str:
        return full_id(self.lab, SWEEP, reference)

    def plan_id(self, reference: str) -> str:
        return full_id(self.lab, PLAN, reference.removeprefix("@"))

    def cite(self, kind: str, **source: Any) -> Json:
        """Return `{"evidence": id}` for a source as it is now; nothing outside of a conversation."""
        if self.session is None:
            return {}
        return {"evidence": self._evidence(self.session, kind, source).id}

    def read(self, kind: str, **source: Any) -> tuple[Reading, Json]:
        """Return what a source shows now, and what `cite` returns for it."""
        if self.session is None:
            return look(self.lab, kind, source), {}
        evidence = self._evidence(self.session, kind, source)
        return evidence.seen, {"evidence": evidence.id}

    def _evidence(self, session: Session, kind: str, source: Json) -> Evidence:
        seen = look(self.lab, kind, source)
        for one in (*self.known.values(), *self.minted):
            if (one.kind, one.source, one.seen) == (kind, source, seen):
                return one
        number = session.evidence + len(self.minted) + 1
        self.minted.append(Evidence(id=f"E{number}", kind=kind, source=source, seen=seen))
        return self.minted[-1]

    def once(self, verb: str) -> IdempotencyKey | None:
        """Return the key under which a call is done once. `verb` is stored: it stays, whatever the tool is called."""
        return IdempotencyKey.of(self.key, verb, self.body) if self.key else None

    def needs_approval(self, question: str, **resolved: str) -> None:
        """Ask a person, unless one has approved this call.

        `resolved`: arguments as ids. A name may belong to something else by the time a person answers.
        """
        if not self.approved:
            raise NeedsApproval(question, resolved)

    def is_own(self, created_by: str, chat_session_id: str | None) -> bool:
        """Return whether this conversation created it."""
        return created_by == str(self.actor) or (self.session is not None and chat_session_id == self.session.id)


class NeedsApproval(Exception):
    """A person must approve this call before it is made."""

    def __init__(self, question: str, resolved: dict[str, str]) -> None:
        super().__init__(question)
        self.resolved = resolved


class EndsTurn(Exception):
    """The turn ends here, with this result of the tool."""

    def __init__(self, why: EndReason, answer: Json, *, wait: Wait | None = None, **data: Any) -> None:
        super().__init__()
        self.why, self.answer, self.wait, self.data = why, answer, wait, data


class Waits(EndsTurn):
    """The turn ends here, and an event starts the next one."""

    def __init__(self, wait: Wait, answer: Json) -> None:
        super().__init__(EndReason.WAITING, answer, wait=wait, wait_for=wait.to_dict())


class Compiling(Exception):
    """A plan is being compiled. When that has ended, the same call is made again and returns the outcome."""

    def __init__(self, plan_id: str, since: int) -> None:
        super().__init__(plan_id)
        self.plan_id, self.since = plan_id, since  # the number of the newest event before it started


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`operation` is the HTTP operation that does the same; it has the tool's name. Empty: there is none."""

    name: str
    description: str
    do: Callable[..., Json]
    takes: Json = field(default_factory=dict)  # arguments, as JSON Schema properties
    chat_takes: Json = field(default_factory=dict)  # further arguments, in conversations only
    outside_takes: Json = field(default_factory=dict)  # further arguments, outside of conversations only
    needs: tuple[str, ...] = ()
    writes: bool = False
    destroys: bool = False  # it ends or replaces something
    plans: bool = False  # a plan is the only thing it writes
    waits: bool = False
    chat_only: bool = False
    operation: str | None = None  # None: the same as the name

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, schema=self.schema())

    def schema(self, *, outside: bool = False) -> Json:
        more = self.outside_takes if outside else self.chat_takes
        return {
            "type": "object",
            "properties": {**self.takes, **more},
            "required": list(self.needs),
            "additionalProperties": False,
        }


def text(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def whole(description: str, least: int, most: int) -> Json:
    return {"type": "integer", "description": description, "minimum": least, "maximum": most}


def number(description: str, least: float, most: float) -> Json:
    return {"type": "number", "description": description, "minimum": least, "maximum": most}


def yes_or_no(description: str) -> Json:
    return {"type": "boolean", "description": description}


def several(description: str, **items: Any) -> Json:
    return {"type": "array", "description": description, "items": items or {"type": "string"}, "maxItems": 200}


def one_of(description: str, *choices: str) -> Json:
    return {"type": "string", "description": description, "enum": list(choices)}


def fields(description: str, needs: tuple[str, ...] = (), **properties: Json) -> Json:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(needs),
        "additionalProperties": False,
    }


def anything(description: str, **more: Any) -> Json:
    """An object with any fields. That must be explicit: OpenAI treats a silent schema as closed."""
    return {"type": "object", "description": description, "additionalProperties": True, **more}
