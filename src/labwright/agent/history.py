"""What a model is told of a conversation: made from the log each time, and never longer than it may be.

Older turns give way to a summary (`summary.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from labwright.agent.evidence.numbers import ID
from labwright.agent.summary import OURS, by_turn, last_summary, summed_up
from labwright.domain.session import Piece, PieceKind
from labwright.llm.chat import ChatMessage, ToolCall

_GIST = 300
_NOT_DONE = json.dumps({"refused": "not carried out: the turn was stopped before", "hint": ""})
_LEFT_OUT = "(left out to save room; call the tool again if you need it)"


def calls_of(message: Piece) -> list[ToolCall]:
    return [ToolCall(**call) for call in message.data["calls"]]


def open_call(own: Sequence[Piece]) -> tuple[ToolCall, int] | None:
    """The first call of the turn's last answer that has no result yet, and its place."""
    last = next((piece for piece in reversed(own) if piece.kind is PieceKind.MESSAGE), None)
    if last is None:
        return None
    done = {p.data["call_id"] for p in own if p.kind is PieceKind.RESULT and p.seq > last.seq}
    return next(((call, i) for i, call in enumerate(calls_of(last)) if call.id not in done), None)


def messages(pieces: Sequence[Piece], most: int) -> tuple[ChatMessage, ...]:
    """The newest turns whole, as far as they fit; of the others a summary."""
    turns, summary = by_turn(pieces), last_summary(pieces)
    kept: list[ChatMessage] = []
    numbers = sorted((number for number in turns if number > summary.through), reverse=True)
    for place, number in enumerate(numbers):
        told = told_of_turn(turns[number], _mode(turns.get(number - 1, [])))
        if place and _length(kept) + _length(told) > most:
            break
        kept = [*told, *kept]
        del turns[number]
    earlier = [ChatMessage(role="user", text=summed_up(turns, summary, most // 3))] if turns else []
    return (*earlier, *_shortened(kept, most))


def too_long(pieces: Sequence[Piece], most: int) -> int:
    """Up to which turn is to be summed up, so that half of what may be told is left; 0 if all fits.

    Not by one turn each time: a summary costs a question, and the rest is to stay as it was for a while.
    """
    summary = last_summary(pieces)
    turns = {number: own for number, own in by_turn(pieces).items() if number > summary.through}
    lengths = {number: _length(told_of_turn(own)) for number, own in turns.items()}
    if sum(lengths.values()) + len(summary.text) <= most:
        return 0
    left, through = sum(lengths.values()), 0
    for number in sorted(turns)[:-1]:  # never the turn that is under way
        if left <= most // 2:
            break
        left, through = left - lengths[number], number
    return through


def _mode(pieces: Sequence[Piece]) -> str:
    return next((str(p.data["mode"]) for p in pieces if "mode" in p.data), "")


def told_of_turn(pieces: Sequence[Piece], mode_before: str = "") -> list[ChatMessage]:
    """A mode that was switched is said where it was, so that earlier turns are no example for this one."""
    told: list[ChatMessage] = []
    results = {p.data["call_id"]: p.data["text"] for p in pieces if p.kind is PieceKind.RESULT}
    for piece in pieces:
        if piece.kind is PieceKind.USER:
            told.append(ChatMessage(role="user", text=_said(piece.data, mode_before)))
        elif piece.kind is PieceKind.WAKE:
            told.append(ChatMessage(role="user", text=_woken(piece.data)))
        elif piece.kind is PieceKind.MESSAGE and (
            piece.data["text"] or piece.data["calls"]
        ):  # providers refuse nothing
            calls = calls_of(piece)
            told.append(ChatMessage(role="assistant", text=piece.data["text"], calls=tuple(calls)))
            told += [ChatMessage(role="tool", text=results.get(c.id, _NOT_DONE), call_id=c.id) for c in calls]
        elif piece.kind is PieceKind.NOTICE and "to_model" in piece.data:
            told.append(ChatMessage(role="user", text=f"{OURS} {piece.data['to_model']}"))
    return told


def _said(data: dict[str, Any], mode_before: str) -> str:
    known = [f"[{one['mention']} is {one['text']}]" for one in data["mentions"]]
    mode = data.get("mode", mode_before)
    switched = [f"{OURS} From here on this is {mode} mode."] if mode_before not in ("", mode) else []
    return "\n".join([data["text"], *known, *switched])


WOKEN = f"{OURS} What you waited for has happened: "


def _woken(data: dict[str, Any]) -> str:
    return f"{WOKEN}{json.dumps(data['news'], ensure_ascii=False)}"


def _length(told: Iterable[ChatMessage]) -> int:
    return sum(len(m.text) + sum(len(str(call.arguments)) for call in m.calls) for m in told)


def _shortened(told: list[ChatMessage], most: int) -> list[ChatMessage]:
    """Within the turns that are kept, the oldest results give way first."""
    over = _length(told) - most
    shown = []
    for place, message in enumerate(told):
        if over > 0 and message.role == "tool" and place < len(told) - 4 and len(message.text) > _GIST:
            over -= len(message.text)
            ids = " ".join(dict.fromkeys(ID.findall(message.text)))[:_GIST]
            message = ChatMessage(role="tool", text=f"{_LEFT_OUT} {ids}", call_id=message.call_id)
        shown.append(message)
    return shown
