"""What a model is told of a conversation: made from the log each time, and never longer than it may be.

Older turns give way to a summary by rules: what was asked, what was answered, and every id and decision in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from labwright.agent.evidence.numbers import ID
from labwright.domain.session import Piece, PieceKind
from labwright.llm.chat import Message, ToolCall

OURS = "[Labwright]"  # what the server says in a conversation
_GIST = 300
_IDS = 40
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


def messages(pieces: Sequence[Piece], most: int) -> tuple[Message, ...]:
    """The newest turns whole, as far as they fit; of the others a summary."""
    turns: dict[int, list[Piece]] = {}
    for piece in pieces:
        turns.setdefault(piece.turn, []).append(piece)
    kept: list[Message] = []
    numbers = sorted(turns, reverse=True)
    for place, number in enumerate(numbers):
        told = _turn(turns[number], _mode(turns.get(number - 1, [])))
        if place and _length(kept) + _length(told) > most:
            older = [turns[n] for n in sorted(numbers[place:])]
            return (Message(role="user", text=_summary(older, most // 3)), *_shortened(kept, most))
        kept = [*told, *kept]
    return tuple(_shortened(kept, most))


def _mode(pieces: Sequence[Piece]) -> str:
    return next((str(p.data["mode"]) for p in pieces if "mode" in p.data), "")


def _turn(pieces: Sequence[Piece], mode_before: str) -> list[Message]:
    """A mode that was switched is said where it was, so that earlier turns are no example for this one."""
    told: list[Message] = []
    results = {p.data["call_id"]: p.data["text"] for p in pieces if p.kind is PieceKind.RESULT}
    for piece in pieces:
        if piece.kind is PieceKind.USER:
            told.append(Message(role="user", text=_said(piece.data, mode_before)))
        elif piece.kind is PieceKind.WAKE:
            told.append(Message(role="user", text=_woken(piece.data)))
        elif piece.kind is PieceKind.MESSAGE and (
            piece.data["text"] or piece.data["calls"]
        ):  # providers refuse nothing
            calls = calls_of(piece)
            told.append(Message(role="assistant", text=piece.data["text"], calls=tuple(calls)))
            told += [Message(role="tool", text=results.get(c.id, _NOT_DONE), call_id=c.id) for c in calls]
        elif piece.kind is PieceKind.NOTICE and "to_model" in piece.data:
            told.append(Message(role="user", text=f"{OURS} {piece.data['to_model']}"))
    return told


def _said(data: dict[str, Any], mode_before: str) -> str:
    known = [f"[{one['mention']} is {one['text']}]" for one in data["mentions"]]
    mode = data.get("mode", mode_before)
    switched = [f"{OURS} From here on this is {mode} mode."] if mode_before not in ("", mode) else []
    return "\n".join([data["text"], *known, *switched])


WOKEN = f"{OURS} What you waited for has happened: "


def _woken(data: dict[str, Any]) -> str:
    return f"{WOKEN}{json.dumps(data['news'], ensure_ascii=False)}"


def _length(told: Iterable[Message]) -> int:
    return sum(len(m.text) + sum(len(str(call.arguments)) for call in m.calls) for m in told)


def _shortened(told: list[Message], most: int) -> list[Message]:
    """Within the turns that are kept, the oldest results give way first."""
    over = _length(told) - most
    shown = []
    for place, message in enumerate(told):
        if over > 0 and message.role == "tool" and place < len(told) - 4 and len(message.text) > _GIST:
            over -= len(message.text)
            ids = " ".join(dict.fromkeys(ID.findall(message.text)))[:_GIST]
            message = Message(role="tool", text=f"{_LEFT_OUT} {ids}", call_id=message.call_id)
        shown.append(message)
    return shown


def _summary(turns: Sequence[Sequence[Piece]], most: int) -> str:
    """Newest last; where even that is too much, the oldest turns keep their decisions and ids only."""
    lines = [_gist(turn) for turn in turns]
    for place, turn in enumerate(turns):
        if sum(map(len, lines)) <= most:
            break
        kept = [*_decisions(turn), *([_ids(turn)] if _ids(turn) else [])]
        lines[place] = f"- {'; '.join(kept)}" if kept else ""
    body = "\n".join(line for line in lines if line)
    return f"[Labwright] Earlier in this conversation, shortened:\n{body}"


def _gist(turn: Sequence[Piece]) -> str:
    said = " / ".join(_clip(p.data["text"]) for p in turn if p.kind is PieceKind.USER)
    answers = [p.data["text"] for p in turn if p.kind is PieceKind.MESSAGE and p.data["text"]]
    return "\n".join(
        filter(
            None,
            [
                f"- asked: {said}" if said else "- woken by an event",
                f"  answered: {_clip(answers[-1])}" if answers else "",
                *(f"  {line}" for line in _decisions(turn)),
                f"  ids: {_ids(turn)}" if _ids(turn) else "",
            ],
        )
    )


def _decisions(turn: Sequence[Piece]) -> list[str]:
    """What was done and what a person decided."""
    done = []
    for piece in turn:
        if piece.kind is PieceKind.RESULT and piece.data.get("writes"):
            done.append(f"did {piece.data['name']}: {_clip(piece.data['text'])}")
        if piece.kind is PieceKind.APPROVAL and piece.data["status"] != "pending":
            done.append(f"{piece.data['status']} by a person: {_clip(piece.data['question'])}")
    return done


def _ids(turn: Sequence[Piece]) -> str:
    found = (name for piece in turn for name in ID.findall(json.dumps(piece.data, ensure_ascii=False)))
    return " ".join(list(dict.fromkeys(found))[:_IDS])


def _clip(text: str) -> str:
    line = re.sub(r"\s+", " ", text).strip()
    return line if len(line) <= _GIST else f"{line[:_GIST]}…"
