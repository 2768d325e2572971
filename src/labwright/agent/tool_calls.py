"""Make one tool call of a conversation: check approval and arguments, call the tool, record result and evidence."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labwright.agent.conversation.turn_log import TurnLog
from labwright.agent.evidence.check import evidence_in
from labwright.agent.planning_turn import questions_left
from labwright.agent.tools.arguments import checked
from labwright.agent.tools.bounds import bounded
from labwright.agent.tools.old_names import renamed
from labwright.agent.tools.tool import Tool, ToolContext
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Invalid, LabwrightError
from labwright.domain.session import ApprovalStatus, Piece, PieceKind
from labwright.llm.chat import ToolCall
from labwright.store.sessions import NewPiece

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    pieces: tuple[NewPiece, ...]
    evidence: int  # how many pieces of evidence the session has now


def make_call(
    turn: TurnLog,
    tools: Mapping[str, Tool],
    call: ToolCall,
    index: int,
    own: Sequence[Piece],
    proposer: str,
    over: threading.Event,
) -> CallResult:
    """Make the call. Errors become a result, too. The turn handles `NeedsApproval`, `EndsTurn` and `Compiling`."""
    session = turn.session
    requests = [p.data for p in own if p.kind is PieceKind.APPROVAL and p.data["call_id"] == call.id]
    answered = requests and requests[-1]["status"] in (ApprovalStatus.APPROVED, ApprovalStatus.DENIED)
    approval = requests[-1] if answered else None
    if approval and approval["status"] == ApprovalStatus.DENIED:
        denial = {"denied": True, "by": approval["answered_by"], "reason": approval["reason"]}
        return CallResult(pieces=(_result(turn, call, denial, ok=False, writes=False),), evidence=session.evidence)
    current = renamed(replace(call, arguments=approval["action"]["arguments"]) if approval else call)
    pieces = turn.pieces()
    message = next(piece for piece in reversed(own) if piece.kind is PieceKind.MESSAGE)
    context = ToolContext(
        lab=turn.lab,
        session=session,
        actor=Actor(Scope.PERSON, approval["answered_by"].partition(":")[2]) if approval else turn.actor,
        approved=approval is not None,
        proposer=proposer,
        key=f"{turn.session_id}.{message.seq}.{index}",
        asked_at=message.time,
        known=evidence_in(p.data for p in pieces if p.kind is PieceKind.EVIDENCE),
        questions_left=questions_left(pieces),
        over=over,
    )
    tool = tools.get(current.name)
    try:
        answer, ok = _do(context, tool, current), True
    except LabwrightError as error:
        answer, ok = {"refused": error.message, "hint": error.hint}, False
    except OSError as error:  # often a file that the model named: it can try something else
        log.warning("%s of %s failed: %r", call.name, session.id, error)
        answer, ok = {"refused": f"The machine refused that: {error.strerror or error}.", "hint": ""}, False
    writes = tool is not None and tool.writes
    evidence = [(PieceKind.EVIDENCE, entry.to_dict()) for entry in context.minted] if ok else []
    result = _result(turn, call, answer, ok=ok, writes=writes)
    return CallResult(pieces=(*evidence, result), evidence=session.evidence + len(evidence))


def _do(context: ToolContext, tool: Tool | None, call: ToolCall) -> dict[str, Any]:
    if tool is None:
        raise Invalid(f"There is no tool {call.name!r} in this mode.", hint="Use one of the tools you were given.")
    if call.malformed:
        hint = f"Numbers must be finite, and the object must not be very long or deep. It was: {call.malformed[:200]}"
        raise Invalid("The arguments are not a valid JSON object.", hint=hint)
    return tool.do(context, **checked(call.arguments, tool.schema()))


def _result(turn: TurnLog, call: ToolCall, answer: dict[str, Any], *, ok: bool, writes: bool) -> NewPiece:
    text = bounded(answer, turn.lab.settings.agent_result_chars)
    shown = {"call_id": call.id, "name": call.name, "ok": ok, "writes": writes and ok, "text": text}
    return PieceKind.RESULT, {**shown, "plan_saved": answer["plan_saved"]} if "plan_saved" in answer else shown


def last_result(turn: TurnLog, call: ToolCall, answer: dict[str, Any]) -> NewPiece:
    """Return the result of a call that ends the turn."""
    return _result(turn, call, answer, ok=True, writes=False)


def action_of(call: ToolCall, resolved: Mapping[str, str]) -> dict[str, Any]:
    """Return the action that a person is asked to approve. Ids replace names: `run` becomes `run_id`."""
    short = {name.removesuffix("_id") for name in resolved}
    arguments = {name: value for name, value in call.arguments.items() if name not in short}
    return {"tool": call.name, "arguments": {**arguments, **resolved}}
