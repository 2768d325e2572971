"""One turn: ask the model, make the calls it requests, ask again, until it only answers. Read `Turn._step` first.

Each step is chosen by the log, so a turn that a kill interrupted continues where it was: a call without a result is
made (again, with the same idempotency key), and an answer that broke off is requested again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import aclosing

from labwright.agent.chats import Chats
from labwright.agent.conversation.history import compacted, messages, open_call
from labwright.agent.conversation.turn_log import TurnLog, TurnOver, of_turn
from labwright.agent.evidence.review import review
from labwright.agent.planning_turn import TOO_MANY, asks_too_much, follow_plan, mode_of, saved_plan, with_saved_line
from labwright.agent.prompt import system_prompt
from labwright.agent.reflection import PREFIX, new_suggestions, reflected
from labwright.agent.stream_writer import ModelMessage, StreamWriter
from labwright.agent.tool_calls import action_of, ended_with, make_call
from labwright.agent.tools import CHAT_TOOLS
from labwright.agent.tools.tool import Compiling, EndsTurn, NeedsApproval, Tool
from labwright.compute.lab import Lab
from labwright.domain.errors import LabwrightError, StorageFailed
from labwright.domain.session import ApprovalStatus, EndReason, Mode, Piece, PieceKind, Session, Suggestion
from labwright.llm.chat import ChatRequest, ToolCall
from labwright.llm.ledger import BudgetReached
from labwright.store.sessions import NewPiece

log = logging.getLogger(__name__)
_MAX_REMINDERS = 2  # how often a model is told that it has asked enough
_REMINDED = "It asked more questions than allowed, and is told to continue with what is known."
_REPEATED = "A restart of the server interrupted the answer; it is requested again."


class Turn:
    def __init__(self, lab: Lab, session: Session, chats: Chats) -> None:
        self._lab = lab
        self._log = TurnLog(lab, session)
        self._mode = mode_of(self._log.own_pieces(), session.mode)  # when the turn started
        self._chats = chats

    @property
    def _tools(self) -> dict[str, Tool]:
        return CHAT_TOOLS[self._mode]

    async def run(self) -> None:
        try:
            self._note_interruption()
            while await self._step():
                pass
        except TurnOver:
            log.info("turn %d of %s was stopped", self._log.turn, self._log.session_id)
        except StorageFailed:
            raise  # nothing can be written, not even the failure; the session worker tries again
        except LabwrightError as error:
            self._fail(error.message, error.hint)
        except Exception as error:
            log.exception("turn %d of %s failed", self._log.turn, self._log.session_id)
            self._fail(f"Labwright failed: {error!r}. This is a bug.", "The server's log has the details.")

    def _fail(self, message: str, hint: str) -> None:
        try:
            self._log.end(EndReason.FAILED, error={"message": message, "hint": hint})
        except TurnOver:
            log.info("turn %d of %s was stopped", self._log.turn, self._log.session_id)

    def _note_interruption(self) -> None:
        if self._log.has_loose_text():
            self._log.write((PieceKind.NOTICE, {"text": _REPEATED, "again": True}))

    async def _step(self) -> bool:
        """Do the next step, and return whether there is another one."""
        pieces = self._log.pieces()
        own = of_turn(pieces, self._log.turn)
        if found := open_call(own):
            return await self._call(*found, own)
        rounds = _rounds(own)
        if rounds >= self._lab.settings.agent_max_rounds:
            self._log.end(EndReason.ROUNDS, rounds=rounds)
            return False
        return await self._ask(pieces, own)

    async def _ask(self, pieces: Sequence[Piece], own: Sequence[Piece]) -> bool:
        self._log.write()  # if nothing can be written, no model is asked: its answer would be lost
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
        """Tell the model to continue without answers. The turn fails if it asks again and again."""
        if sum(piece.kind is PieceKind.NOTICE and "to_model" in piece.data for piece in own) >= _MAX_REMINDERS:
            error = {
                "message": "It asked more questions than allowed and made no plan.",
                "hint": "Say what you want in more detail.",
            }
            self._log.end(EndReason.FAILED, written, error=error)
            return False
        self._log.write(written, (PieceKind.NOTICE, {"text": _REMINDED, "to_model": TOO_MANY}))
        return True

    async def _answer(self, request: ChatRequest, own: Sequence[Piece], suggested: Suggestion | None) -> ModelMessage:
        writer = StreamWriter(self._log)
        async with aclosing(self._chats.chat(self._log.session_id).stream(request)) as stream:
            async for piece in stream:
                writer.take(piece)
        if not writer.calls:
            self._add_ending(writer, own, suggested)
        return writer.done()

    def _add_ending(self, writer: StreamWriter, own: Sequence[Piece], suggested: Suggestion | None) -> None:
        """Add Labwright's own lines to the answer that ends the turn."""
        if suggested:
            writer.add(f"\n\n{PREFIX}: {suggested.text}")
        if (plan_id := saved_plan(own)) and self._mode is Mode.PLAN:
            writer.add(with_saved_line("".join(writer.text), plan_id))

    def _budget(self, reached: BudgetReached, own: Sequence[Piece]) -> bool:
        """Ask a person once for more budget. If it is granted, the turn continues with the same amount again."""
        status = _decision(own, "")
        if status is None:
            question = f"{reached.message} Continue with the same amount again?"
            self._log.ask(question, call_id="", action={"budget": reached.what})
            return False
        if status is ApprovalStatus.DENIED:
            self._log.end(EndReason.DENIED, error={"message": reached.message, "hint": reached.hint})
            return False
        self._chats.allow_more(self._log.session_id)
        return True

    async def _call(self, call: ToolCall, place: int, own: Sequence[Piece]) -> bool:
        if not any(piece.kind is PieceKind.CALL and piece.data["call_id"] == call.id for piece in own):
            self._log.write((PieceKind.CALL, {"call_id": call.id, "name": call.name, "arguments": call.arguments}))
        over = threading.Event()
        try:
            done = await asyncio.to_thread(
                make_call, self._log, self._tools, call, place, own, self._chats.proposer, over
            )
        except asyncio.CancelledError:
            over.set()  # the thread continues until it checks this
            raise
        except NeedsApproval as asked:
            self._log.ask(str(asked), call_id=call.id, action=action_of(call, asked.resolved))
            return False
        except Compiling as compiling:
            await follow_plan(self._log, compiling.plan_id, compiling.since, own)
            return True  # the call is still open: made again, it returns what became of the plan
        except EndsTurn as ends:
            result = ended_with(self._log, call, ends.answer)
            self._log.end(ends.why, result, wait=ends.wait, **ends.data)
            return False
        self._log.write(*done.pieces, evidence=done.evidence)
        return True


def _last_said(pieces: Sequence[Piece]) -> str:
    return next((str(p.data["text"]) for p in reversed(pieces) if p.kind is PieceKind.USER), "")


def _rounds(own: Sequence[Piece]) -> int:
    return sum(piece.kind is PieceKind.MESSAGE for piece in own)


def _decision(own: Sequence[Piece], call_id: str) -> ApprovalStatus | None:
    """Return what a person answered since the model's last message, or None if nobody was asked."""
    last = max((piece.seq for piece in own if piece.kind is PieceKind.MESSAGE), default=0)
    asked = [p for p in own if p.kind is PieceKind.APPROVAL and p.data["call_id"] == call_id and p.seq > last]
    return ApprovalStatus(asked[-1].data["status"]) if asked else None
