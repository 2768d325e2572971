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
from labwright.agent.tool_calls import action_of, last_result, make_call
from labwright.agent.tools import CHAT_TOOLS
from labwright.agent.tools.tool import Compiling, EndsTurn, NeedsApproval, Tool
from labwright.compute.lab import Lab
from labwright.domain.errors import LabwrightError, StorageFailed
from labwright.domain.session import ApprovalStatus, EndReason, Mode, Piece, PieceKind, Session, Suggestion
from labwright.llm.chat import ChatRequest, ToolCall
from labwright.llm.ledger import BudgetReached
from labwright.store.sessions import NewPiece

log = logging.getLogger(__name__)
_MAX_REMINDERS = 2  # per turn, to a model that asks too many questions
_REMINDED = "The model asked more questions than allowed. It continues with what is known."
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
            if self._log.has_loose_text():
                self._log.write((PieceKind.NOTICE, {"text": _REPEATED, "again": True}))
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

    async def _step(self) -> bool:
        """Do the next step, and return whether there is another one."""
        pieces = self._log.pieces()
        own = of_turn(pieces, self._log.turn)
        if unanswered := open_call(own):
            call, index = unanswered
            return await self._call(call, index, own)
        rounds = _rounds(own)
        if rounds >= self._lab.settings.agent_max_rounds:
            self._log.end(EndReason.ROUNDS, rounds=rounds)
            return False
        return await self._ask(pieces, own)

    async def _ask(self, pieces: Sequence[Piece], own: Sequence[Piece]) -> bool:
        self._log.write()  # if nothing can be written, no model is asked: its answer would be lost
        try:
            if summary := await compacted(pieces, self._history_chars, self._chats.chat(self._log.session_id)):
                self._log.write(summary)
                return True
            suggested = reflected(pieces, own) if self._mode is Mode.AGENT else None
            answer = await self._answer(await self._request(pieces), own, suggested)
        except BudgetReached as reached:
            return self._on_budget_reached(reached, own)
        answer.rename_calls(f"call_{self._log.turn}_{_rounds(own)}")
        arguments = [call.arguments for call in answer.calls]
        marks = await asyncio.to_thread(review, self._lab, answer.text, pieces, arguments)
        message = (PieceKind.MESSAGE, answer.to_dict([mark.to_dict() for mark in marks]))
        if answer.calls:
            self._log.write(message)
            return True
        if self._mode is Mode.PLAN and asks_too_much(answer.text, pieces, own):
            return self._refuse_questions(message, own)
        suggestions = new_suggestions(answer.text, pieces, suggested)
        self._log.end(EndReason.DONE, message, *suggestions, cut=answer.why == "length")
        return False

    async def _request(self, pieces: Sequence[Piece]) -> ChatRequest:
        goal = next((str(piece.data["text"]) for piece in reversed(pieces) if piece.kind is PieceKind.USER), "")
        return ChatRequest(
            system=await asyncio.to_thread(system_prompt, self._lab, self._log.session_id, self._mode, goal),
            messages=messages(pieces, self._history_chars),
            tools=tuple(tool.spec for tool in self._tools.values()),
        )

    @property
    def _history_chars(self) -> int:
        return self._lab.settings.agent_history_chars

    def _refuse_questions(self, message: NewPiece, own: Sequence[Piece]) -> bool:
        """Tell the model to continue without answers. The turn fails if it keeps asking."""
        if sum(piece.kind is PieceKind.NOTICE and "to_model" in piece.data for piece in own) >= _MAX_REMINDERS:
            error = {
                "message": "The model asked more questions than allowed and made no plan.",
                "hint": "Say what you want in more detail.",
            }
            self._log.end(EndReason.FAILED, message, error=error)
            return False
        self._log.write(message, (PieceKind.NOTICE, {"text": _REMINDED, "to_model": TOO_MANY}))
        return True

    async def _answer(self, request: ChatRequest, own: Sequence[Piece], suggested: Suggestion | None) -> ModelMessage:
        writer = StreamWriter(self._log)
        async with aclosing(self._chats.chat(self._log.session_id).stream(request)) as stream:
            async for piece in stream:
                writer.take(piece)
        if not writer.calls:  # this answer ends the turn: Labwright adds its own lines
            if suggested:
                writer.add(f"\n\n{PREFIX}: {suggested.text}")
            if (plan_id := saved_plan(own)) and self._mode is Mode.PLAN:
                writer.add(with_saved_line("".join(writer.text), plan_id))
        return writer.done()

    def _on_budget_reached(self, reached: BudgetReached, own: Sequence[Piece]) -> bool:
        """Ask a person once for more budget. If it is granted, the turn continues with the same amount again."""
        last = max((piece.seq for piece in own if piece.kind is PieceKind.MESSAGE), default=0)
        approvals = [p for p in own if p.kind is PieceKind.APPROVAL and not p.data["call_id"] and p.seq > last]
        if not approvals:
            question = f"{reached.message} Continue with the same amount again?"
            self._log.ask(question, call_id="", action={"budget": reached.what})
            return False
        if approvals[-1].data["status"] == ApprovalStatus.DENIED:
            self._log.end(EndReason.DENIED, error={"message": reached.message, "hint": reached.hint})
            return False
        self._chats.allow_more(self._log.session_id)
        return True

    async def _call(self, call: ToolCall, index: int, own: Sequence[Piece]) -> bool:
        if not any(piece.kind is PieceKind.CALL and piece.data["call_id"] == call.id for piece in own):
            self._log.write((PieceKind.CALL, {"call_id": call.id, "name": call.name, "arguments": call.arguments}))
        over = threading.Event()
        try:
            done = await asyncio.to_thread(
                make_call, self._log, self._tools, call, index, own, self._chats.proposer, over
            )
        except asyncio.CancelledError:
            over.set()  # the thread continues until it checks this
            raise
        except NeedsApproval as asked:
            self._log.ask(str(asked), call_id=call.id, action=action_of(call, asked.resolved))
            return False
        except Compiling as compiling:
            await follow_plan(self._log, compiling.plan_id, compiling.since, own)
            return True  # the next step makes the same call again, which now returns the result
        except EndsTurn as ends:
            result = last_result(self._log, call, ends.answer)
            self._log.end(ends.why, result, wait=ends.wait, **ends.data)
            return False
        self._log.write(*done.pieces, evidence=done.evidence)
        return True


def _rounds(own: Sequence[Piece]) -> int:
    return sum(piece.kind is PieceKind.MESSAGE for piece in own)
