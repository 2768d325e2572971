"""Older turns in few words: what a model made of them, or rules; and in any case every decision and id, by rules.

What a model forgets when it sums up is therefore not lost: what was done, allowed and denied, and with which ids, is
taken from the log each time; and so is what the person said ("never use the test set"), as far as there is room.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from labwright.agent.evidence.numbers import ID
from labwright.domain.session import Piece, PieceKind

OURS = "[Labwright]"  # what the server says in a conversation
_GIST = 300
_SHORT_GIST = 100
_SEEN_IDS = 40  # of those that were only shown, in each turn
_SPOKEN_OF = (PieceKind.USER, PieceKind.WAKE, PieceKind.MESSAGE, PieceKind.APPROVAL)

Turns = Mapping[int, Sequence[Piece]]


@dataclass(frozen=True, slots=True)
class Summary:
    through: int = 0  # the last turn that it is of
    text: str = ""  # in a model's words; empty where none was asked, or it failed


def by_turn(pieces: Sequence[Piece]) -> dict[int, list[Piece]]:
    turns: dict[int, list[Piece]] = {}
    for piece in pieces:
        turns.setdefault(piece.turn, []).append(piece)
    return turns


def last_summary(pieces: Sequence[Piece]) -> Summary:
    found = next((piece.data for piece in reversed(pieces) if piece.kind is PieceKind.SUMMARY), None)
    return Summary(found["through"], found["text"]) if found else Summary()


def summed_up(turns: Turns, summary: Summary, most: int) -> str:
    """Newest last. Where it is too much, the oldest turns keep less, and at last their decisions and ids alone."""
    numbers = sorted(turns)
    lines = {number: gist(turns[number]) for number in numbers}
    if summary.text:
        lines |= {number: _kept(turns[number], _GIST, _GIST) for number in numbers if number <= summary.through}
    for length, of_the_person in ((_GIST, _SHORT_GIST), (_SHORT_GIST, 0)):
        for number in numbers:
            if sum(map(len, lines.values())) <= most:
                break
            lines[number] = _kept(turns[number], length, of_the_person)
    told = [f"{OURS} Earlier in this conversation, shortened:", summary.text, *lines.values()]
    return "\n".join(line for line in told if line)


def gist(turn: Sequence[Piece]) -> str:
    said = _said(turn, _GIST)
    answers = [p.data["text"] for p in turn if p.kind is PieceKind.MESSAGE and p.data["text"]]
    lines = [
        f"- asked: {said}" if said else "- woken by an event",
        f"  answered: {_clip(answers[-1])}" if answers else "",
        *(f"  {line}" for line in _decisions(turn, _GIST)),
        f"  ids: {_ids(turn)}" if _ids(turn) else "",
    ]
    return "\n".join(line for line in lines if line)


def _said(turn: Sequence[Piece], length: int) -> str:
    return " / ".join(_clip(piece.data["text"], length) for piece in turn if piece.kind is PieceKind.USER)


def _kept(turn: Sequence[Piece], length: int, of_the_person: int) -> str:
    """Decisions and ids are never left out."""
    said = f"asked: {_said(turn, of_the_person)}" if of_the_person and _said(turn, of_the_person) else ""
    kept = [said, *_decisions(turn, length), _ids(turn)]
    return f"- {'; '.join(line for line in kept if line)}" if any(kept) else ""


def _decisions(turn: Sequence[Piece], length: int) -> Iterator[str]:
    """What was done and what a person decided."""
    for piece in turn:
        if piece.kind is PieceKind.RESULT and piece.data.get("writes"):
            yield f"did {piece.data['name']}: {_clip(piece.data['text'], length)}"
        if piece.kind is PieceKind.APPROVAL and piece.data["status"] != "pending":
            yield f"{piece.data['status']} by a person: {_clip(piece.data['question'], length)}"


def _ids(turn: Sequence[Piece]) -> str:
    """All that was spoken of or made; of what was only shown, the first."""
    spoken = [name for piece in turn if _is_spoken_of(piece) for name in _ids_in(piece)]
    shown = dict.fromkeys(name for piece in turn if not _is_spoken_of(piece) for name in _ids_in(piece))
    return " ".join(dict.fromkeys([*spoken, *list(shown)[:_SEEN_IDS]]))


def _is_spoken_of(piece: Piece) -> bool:
    return piece.kind in _SPOKEN_OF or bool(piece.data.get("writes"))


def _ids_in(piece: Piece) -> list[str]:
    return ID.findall(json.dumps(piece.data, ensure_ascii=False))


def _clip(text: str, length: int = _GIST) -> str:
    line = re.sub(r"\s+", " ", text).strip()
    return line if len(line) <= length else f"{line[:length]}…"
