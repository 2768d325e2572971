"""One call of a tool: who does it, what it answers, and the evidence it leaves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labwright.agent.evidence.check import evidence_in
from labwright.agent.planning_rules import questions_left
from labwright.agent.tools.arguments import checked
from labwright.agent.tools.bounds import bounded
from labwright.agent.tools.tool import Deed, Tool
from labwright.agent.turn_log import TurnLog
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Invalid, LabwrightError
from labwright.domain.session import ApprovalStatus, Piece, PieceKind
from labwright.llm.chat import ToolCall
from labwright.store.sessions import NewPiece

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    pieces: tuple[NewPiece, ...]
    evidence: int  # how many pieces the session has now


def carry_out(
    turn: TurnLog, tools: Mapping[str, Tool], call: ToolCall, place: int, own: Sequence[Piece], over: threading.Event
) -> Done:
    """What goes wrong is an answer too. `NeedsApproval`, `EndsTurn` and `Compiling` are the turn's business."""
    session = turn.session
    approval = _answered(own, call)
    if approval and approval["status"] == ApprovalStatus.DENIED:
        words = {"denied": True, "by": approval["answered_by"], "reason": approval["reason"]}
        return Done(pieces=(_result(turn, call, words, ok=False, writes=False),), evidence=session.evidence)
    call = replace(call, arguments=approval["action"]["arguments"]) if approval else call
    pieces = turn.pieces()
    deed = Deed(
        lab=turn.lab,
        session=session,
        actor=_person(approval["answered_by"]) if approval else turn.actor,
        approved=approval is not None,
        key=f"{turn.session_id}.{_last_message(own).seq}.{place}",
        asked_at=_last_message(own).time,
        known=evidence_in(p.data for p in pieces if p.kind is PieceKind.EVIDENCE),
        questions_left=questions_left(pieces),
        over=over,
    )
    tool = tools.get(call.name)
    try:
        answer, ok = _do(deed, tool, call), True
    except LabwrightError as error:
        answer, ok = _refusal(error.message, error.hint), False
    except OSError as error:  # of a file that the model named, or the machine's: it can tell, and go on otherwise
        log.warning("%s of %s met %r", call.name, session.id, error)
        answer, ok = _refusal(f"The machine refused that: {error.strerror or error}.", ""), False
    writes = tool is not None and tool.writes
    minted = [(PieceKind.EVIDENCE, one.to_dict()) for one in deed.minted] if ok else []
    shown = (*minted, _result(turn, call, answer, ok=ok, writes=writes))
    return Done(pieces=shown, evidence=session.evidence + len(minted))


def _do(deed: Deed, tool: Tool | None, call: ToolCall) -> dict[str, Any]:
    if tool is None:
        raise Invalid(f"There is no tool {call.name!r} in this mode.", hint="Use one of those you were given.")
    if call.malformed:
        hint = f"Numbers are finite, and it is neither very long nor deep. They were: {call.malformed[:200]}"
        raise Invalid("The arguments are no JSON object that can be used.", hint=hint)
    return tool.do(deed, **checked(call.arguments, tool.schema))


def _refusal(message: str, hint: str) -> dict[str, Any]:
    return {"refused": message, "hint": hint}


def _result(turn: TurnLog, call: ToolCall, answer: dict[str, Any], *, ok: bool, writes: bool) -> NewPiece:
    text = bounded(answer, turn.lab.settings.agent_result_chars)
    told = {"call_id": call.id, "name": call.name, "ok": ok, "writes": writes and ok, "text": text}
    return PieceKind.RESULT, {**told, "plan_saved": answer["plan_saved"]} if "plan_saved" in answer else told


def ended_with(turn: TurnLog, call: ToolCall, answer: dict[str, Any]) -> NewPiece:
    """The answer of a call that ends the turn."""
    return _result(turn, call, answer, ok=True, writes=False)


def _answered(own: Sequence[Piece], call: ToolCall) -> dict[str, Any] | None:
    """For exactly this call. What was approved, its `action`, is what is done."""
    asked = [p.data for p in own if p.kind is PieceKind.APPROVAL and p.data["call_id"] == call.id]
    found = asked[-1] if asked else None
    return found if found and found["status"] in (ApprovalStatus.APPROVED, ApprovalStatus.DENIED) else None


def action_of(call: ToolCall, meant: Mapping[str, str]) -> dict[str, Any]:
    return {"tool": call.name, "arguments": {**call.arguments, **meant}}


def _person(words: str) -> Actor:
    """Done as the one who allowed exactly this call."""
    return Actor(Scope.PERSON, words.partition(":")[2])


def _last_message(own: Sequence[Piece]) -> Piece:
    return next(piece for piece in reversed(own) if piece.kind is PieceKind.MESSAGE)
