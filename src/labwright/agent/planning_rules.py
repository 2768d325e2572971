"""What holds in a turn of planning, read from the log: how much was asked, what was saved, and the last line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from labwright.agent.tools.questions import MOST_QUESTIONS
from labwright.domain.session import EndReason, Mode, Piece, PieceKind

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*$", re.DOTALL | re.MULTILINE)
_QUESTION = re.compile(r"\?+(?=[\s*_\"'”’)\]]|$)")
TOO_MANY = (
    f"You have asked more than {MOST_QUESTIONS} questions, and the user is not asked again. Make and save the plan now "
    "from what is known, and say in it what you assume."
)


def saved_line(plan_id: str) -> str:
    return f"✅ Plan saved — ID: @{plan_id}"


def with_saved_line(text: str, plan_id: str) -> str:
    """What has to be added so that the answer ends with it."""
    line = saved_line(plan_id)
    if text.rstrip().splitlines()[-1:] == [line]:
        return ""
    return f"\n\n{line}" if text.strip() else line


def mode_of(own: Sequence[Piece], otherwise: Mode) -> Mode:
    """The mode in which a turn began; that of the session may have been changed since."""
    first = next((piece for piece in own if piece.kind in (PieceKind.USER, PieceKind.WAKE)), None)
    return Mode(first.data["mode"]) if first is not None and "mode" in first.data else otherwise


def saved_plan(own: Sequence[Piece]) -> str | None:
    """The plan that was saved last in a turn."""
    found = [str(p.data["plan_saved"]) for p in own if p.kind is PieceKind.RESULT and p.data.get("plan_saved")]
    return found[-1] if found else None


def questions_in(text: str) -> int:
    return len(_QUESTION.findall(_CODE.sub(" ", text)))


def asks_too_much(text: str, pieces: Sequence[Piece], own: Sequence[Piece]) -> bool:
    """Whether an answer that would end its turn asks more than is left. With a plan saved, a question costs nothing."""
    return saved_plan(own) is None and questions_in(text) > questions_left(pieces)


def questions_left(pieces: Sequence[Piece]) -> int:
    """Of those that may be asked before there is a plan. A plan that was saved begins the count anew."""
    turns: dict[int, list[Piece]] = {}
    for piece in pieces:
        turns.setdefault(piece.turn, []).append(piece)
    asked = 0
    for own in turns.values():
        asked = 0 if saved_plan(own) else asked + _asked_in(own)
    return max(0, MOST_QUESTIONS - asked)


def _asked_in(own: Sequence[Piece]) -> int:
    if mode_of(own, Mode.AGENT) is not Mode.PLAN:
        return 0
    by_tool = sum(
        len(p.data["questions"]) for p in own if p.kind is PieceKind.END and p.data["why"] == EndReason.QUESTIONS
    )
    in_words = [questions_in(p.data["text"]) for p in own if p.kind is PieceKind.MESSAGE and not p.data["calls"]]
    return by_tool + sum(in_words)
