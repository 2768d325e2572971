"""One turn: ask the model, carry out what it calls, ask again, until it only speaks. Read `Turn._step` first.

A step is chosen by what the log holds, so a turn that was cut off by a kill goes on where it was: a call without a
result is carried out (again, under the same key), and an answer that broke off is asked for anew.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import aclosing

from labwright.agent.answer import Answer, Pen
from labwright.agent.carry_out import action_of, carry_out, ended_with
from labwright.agent.chats import Chats
from labwright.agent.compaction import compacted
from labwright.agent.evidence.review import review
from labwright.agent.history import messages, open_call
from labwright.agent.modes.chat import CHAT_MODES
from labwright.agent.plan_progress import follow_plan
from labwright.agent.planning_rules import TOO_MANY, asks_too_much, mode_of, saved_plan, with_saved_line
from labwright.agent.prompt import system_prompt
from labwright.agent.reflection import PREFIX, new_suggestions, reflected
from labwright.agent.tools.tool import Compiling, EndsTurn, NeedsApproval, Tool
from labwright.agent.turn_log import TurnLog, TurnOver, of_turn
from labwright.compute.lab import Lab
from labwright.domain.errors import LabwrightError, StorageFailed
from labwright.domain.session import ApprovalStatus, EndReason, Mode, Piece, PieceKind, Session, Suggestion
from labwright.llm.chat import ChatRequest, ToolCall
from labwright.llm.ledger import BudgetReached
from labwright.store.sessions import NewPiece

log = logging.getLogger(__name__)
_PATIENCE = 2  # how often a model is told that it has asked enough
_TOLD_TO_GO_ON = "It asked more than it may, and is told to go on with what is known."
_AGAIN = "The answer was cut off by a restart of the server; it is asked for again."


class Turn:
    def __init__(self, lab: Lab, session: Session, chats: Chats) -> None:
        self._lab = lab
        self._log = TurnLog(lab, session)
        self._mode = mode_of(self._log.own_pieces(), session.mode)  # as it was when the turn began
        self._chats = chats

    @property
    def _tools(self) -> dict[str, Tool]:
        return CHAT_MODES[self._mode].tools

    async def run(self) -> None:
        try:
            self._tell_of_interruption()
            while await self._step():
                pass
        except TurnOver:
            log.info("turn %d of %s was stopped", self._log.turn, self._log.session_id)
        except StorageFailed:
            raise  # nothing can be written, not even that; the keeper tries again
        except LabwrightError as error:
            self._fail(error.message, error.hint)
        except Exception as error:
            log.exception("turn %d of %s failed", self._log.turn, self._log.session_id)
            self._fail(f"Labwright hit a fault of its own: {error!r}.", "The server's log has the details.")

    def _fail(self, message: str, hint: str) -> None:
        try:
            self._log.end(EndReason.FAILED, error={"message": message, "hint": hint})
        except TurnOver:
            log.info("turn %d of %s was stopped", self._log.turn, self._log.session_id)

    def _tell_of_interruption(self) -> None:
        if self._log.has_loose_text():
            self._log.write((PieceKind.NOTICE, {"text": _AGAIN, "again": True}))

    async def _step(self) -> bool:
        """Whether there is another to come."""
        pieces = self._log.pieces()
        own = of_turn(pieces, self._log.turn)
        if found := open_call(own):
            return await self._carry_out(*found, own)
        rounds = _rounds(own)
        if rounds >= self._lab.settings.agent_max_rounds:
            self._log.end(EndReason.ROUNDS, rounds=rounds)
            return False
        return await self._ask(pieces, own)

    async def _ask(self, pieces: Sequence[Piece], own: Sequence[Piece]) -> bool:
        self._log.write()  # where nothing can be written no model is asked: its answer would be lost
        try:
            if summary := await compacted(pieces, self._most, self._chats.chat(self._log.session_id)):
                self._log.write(summary)
                return True
            suggested = reflected(pieces, own) if self._mode is Mode.AGENT else None
            answer = await self._answer(await self._request(pieces), own, suggested)
        except BudgetReached as reached:
            return self._budget(reached, own)
        answer.rename_calls(f"call_{self._log.turn}_{_rounds(own)}")
        given = [call.arguments for call in answer.calls]
        marks = await asyncio.to_thread(review, self._lab, answer.text, pieces, given)
        written = (PieceKind.MESSAGE, answer.to_dict([mark.to_dict() for mark in marks]))
        if answer.calls:
            self._log.write(written)
            return True
        if self._mode is Mode.PLAN and asks_too_much(answer.text, pieces, own):
            return self._refuse_questions(written, own)
        suggestions = new_suggestions(answer.text, pieces, suggested)
        self._log.end(EndReason.DONE, written, *suggestions, cut=answer.why == "length")
        return False

    async def _request(self, pieces: Sequence[Piece]) -> ChatRequest:
        said = _last_said(pieces)
        return ChatRequest(
            system=await asyncio.to_thread(system_prompt, self._lab, self._log.session_id, self._mode, said),
            messages=messages(pieces, self._most),
            tools=tuple(tool.spec for tool in self._tools.values()),
        )

    @property
    def _most(self) -> int:
        return self._lab.settings.agent_history_chars

    def _refuse_questions(self, written: NewPiece, own: Sequence[Piece]) -> bool:
        """The model is told to go on without; one that does not listen has had its turn."""
        if sum(piece.kind is PieceKind.NOTICE and "to_model" in piece.data for piece in own) >= _PATIENCE:
            error = {
                "message": "It asked more than it may and made no plan.",
                "hint": "Say what you want in more detail.",
            }
            self._log.end(EndReason.FAILED, written, error=error)
            return False
        self._log.write(written, (PieceKind.NOTICE, {"text": _TOLD_TO_GO_ON, "to_model": TOO_MANY}))
        return True

    async def _answer(self, request: ChatRequest, own: Sequence[Piece], suggested: Suggestion | None) -> Answer:
        pen = Pen(self._log)
        async with aclosing(self._chats.chat(self._log.session_id).stream(request)) as stream:
            async for piece in stream:
                pen.take(piece)
        if not pen.calls:
            self._add_last_words(pen, own, suggested)
        return pen.done()

    def _add_last_words(self, pen: Pen, own: Sequence[Piece], suggested: Suggestion | None) -> None:
        """Of ours, behind those of the model that end the turn."""
        if suggested:
            pen.add(f"\n\n{PREFIX}: {suggested.text}")
        if (plan_id := saved_plan(own)) and self._mode is Mode.PLAN:
            pen.add(with_saved_line("".join(pen.text), plan_id))

    def _budget(self, reached: BudgetReached, own: Sequence[Piece]) -> bool:
        """Asked for once; granted, it goes on with as much again."""
        status = _decision(own, "")
        if status is None:
            question = f"{reached.message} Let it go on with as much again?"
            self._log.ask(question, call_id="", action={"budget": reached.what})
            return False
        if status is ApprovalStatus.DENIED:
            self._log.end(EndReason.DENIED, error={"message": reached.message, "hint": reached.hint})
            return False
        self._chats.allow_more(self._log.session_id)
        return True

    async def _carry_out(self, call: ToolCall, place: int, own: Sequence[Piece]) -> bool:
        if not any(piece.kind is PieceKind.CALL and piece.data["call_id"] == call.id for piece in own):
            self._log.write((PieceKind.CALL, {"call_id": call.id, "name": call.name, "arguments": call.arguments}))
        over = threading.Event()
        try:
            done = await asyncio.to_thread(carry_out, self._log, self._tools, call, place, own, over)
        except asyncio.CancelledError:
            over.set()  # the thread goes on until it looks
            raise
        except NeedsApproval as asked:
            self._log.ask(str(asked), call_id=call.id, action=action_of(call, asked.meant))
            return False
        except Compiling as compiling:
            await follow_plan(self._log, compiling.plan_id, compiling.since, own)
            return True  # the call is still open: carried out again, it tells what became of the plan
        except EndsTurn as ends:
            result = ended_with(self._log, call, ends.answer)
            self._log.end(ends.why, result, wait=ends.wait, **ends.told)
            return False
        self._log.write(*done.pieces, evidence=done.evidence)
        return True


def _last_said(pieces: Sequence[Piece]) -> str:
    return next((str(p.data["text"]) for p in reversed(pieces) if p.kind is PieceKind.USER), "")


def _rounds(own: Sequence[Piece]) -> int:
    return sum(piece.kind is PieceKind.MESSAGE for piece in own)


def _decision(own: Sequence[Piece], call_id: str) -> ApprovalStatus | None:
    """What a person answered since the last answer of the model; none if nobody was asked."""
    last = max((piece.seq for piece in own if piece.kind is PieceKind.MESSAGE), default=0)
    asked = [p for p in own if p.kind is PieceKind.APPROVAL and p.data["call_id"] == call_id and p.seq > last]
    return ApprovalStatus(asked[-1].data["status"]) if asked else None
