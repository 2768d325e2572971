"""Rules of a turn in plan mode: the limit on questions, the last line, and following a compilation."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from labwright.agent.conversation.turn_log import TurnLog
from labwright.agent.tools.plans import MOST_QUESTIONS
from labwright.domain.event import Event, EventType
from labwright.domain.session import EndReason, Mode, Piece, PieceKind
from labwright.store import events, plans

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*$", re.DOTALL | re.MULTILINE)
_QUESTION = re.compile(r"\?+(?=[\s*_\"'”’)\]]|$)")
TOO_MANY = (
    f"You have asked more than {MOST_QUESTIONS} questions, and the user is not asked again. Make and save the plan now "
    "from what is known, and say in it what you assume."
)
_CHECK_SECONDS = 5.0  # in case a commit was missed
_PAGE = 500
_SHOWN = ("plan_id", "node", "status", "seconds", "message")


def saved_line(plan_id: str) -> str:
    return f"✅ Plan saved — ID: @{plan_id}"


def with_saved_line(text: str, plan_id: str) -> str:
    """Return the text to add to an answer so that it ends with the saved line."""
    line = saved_line(plan_id)
    if text.rstrip().splitlines()[-1:] == [line]:
        return ""
    return f"\n\n{line}" if text.strip() else line


def mode_of(own: Sequence[Piece], otherwise: Mode) -> Mode:
    """Return the mode in which a turn started. The session's mode may have changed since."""
    first = next((piece for piece in own if piece.kind in (PieceKind.USER, PieceKind.WAKE)), None)
    return Mode(first.data["mode"]) if first is not None and "mode" in first.data else otherwise


def saved_plan(own: Sequence[Piece]) -> str | None:
    """Return the plan that the turn saved last."""
    saved = [str(p.data["plan_saved"]) for p in own if p.kind is PieceKind.RESULT and p.data.get("plan_saved")]
    return saved[-1] if saved else None


def questions_in(text: str) -> int:
    return len(_QUESTION.findall(_CODE.sub(" ", text)))


def asks_too_much(text: str, pieces: Sequence[Piece], own: Sequence[Piece]) -> bool:
    """Return whether an answer asks more than is allowed. Once the turn has saved a plan, questions are free."""
    return saved_plan(own) is None and questions_in(text) > questions_left(pieces)


def questions_left(pieces: Sequence[Piece]) -> int:
    """Return how many questions may be asked before there is a plan. A saved plan resets the count."""
    turns: dict[int, list[Piece]] = {}
    for piece in pieces:
        turns.setdefault(piece.turn, []).append(piece)
    asked = 0
    for own in turns.values():
        asked = 0 if saved_plan(own) else asked + _count_questions(own)
    return max(0, MOST_QUESTIONS - asked)


def _count_questions(own: Sequence[Piece]) -> int:
    if mode_of(own, Mode.AGENT) is not Mode.PLAN:
        return 0
    by_tool = sum(
        len(p.data["questions"]) for p in own if p.kind is PieceKind.END and p.data["why"] == EndReason.QUESTIONS
    )
    in_text = [questions_in(p.data["text"]) for p in own if p.kind is PieceKind.MESSAGE and not p.data["calls"]]
    return by_tool + sum(in_text)


async def follow_plan(log: TurnLog, plan_id: str, since: int, own: Sequence[Piece]) -> None:
    """Write the progress of a compilation into the log until it has ended. After a restart, continue where it was."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def on_commit(committed: list[Event]) -> None:
        if any(event.data.get("plan_id") == plan_id for event in committed):
            loop.call_soon_threadsafe(news.set)

    written = [p.data["event"] for p in own if p.kind is PieceKind.PLAN and p.data["plan_id"] == plan_id]
    seq = max(written, default=0) or since
    with log.lab.db.listening(on_commit):
        while True:
            news.clear()
            is_done = not plans.get(log.lab.db.reader(), plan_id).compiling_by
            seq = await asyncio.to_thread(_write_progress, log, plan_id, seq)
            if is_done:
                return
            try:
                await asyncio.wait_for(news.wait(), _CHECK_SECONDS)
            except TimeoutError:
                continue


def _write_progress(log: TurnLog, plan_id: str, seq: int) -> int:
    """Write the plan's events after `seq` into the log, and return the number of the last event."""
    while page := events.after(log.lab.db.reader(), seq, _PAGE, types=(EventType.PLAN_NODE,)):
        seq = page[-1].seq
        ours = [event for event in page if event.data["plan_id"] == plan_id]
        pieces = [{**{name: event.data[name] for name in _SHOWN}, "event": event.seq} for event in ours]
        if pieces:
            log.write(*((PieceKind.PLAN, piece) for piece in pieces))
    return seq
