"""Check an answer against its conversation: its evidence, the chosen values, and the ids that exist."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from labwright.agent.evidence.check import CheckContext, Mark, check, evidence_in
from labwright.agent.evidence.evidence import Evidence, Reading
from labwright.agent.evidence.sources import look
from labwright.compute.lab import Lab
from labwright.domain.command_line import params_of
from labwright.domain.errors import LabwrightError, NotFound
from labwright.domain.event import EventType
from labwright.domain.session import Piece, PieceKind
from labwright.store import alerts, approvals, events, memories, plans, runs, sessions, sweeps

_NOT_STARTED = '"started": false'  # the result of a tool if something similar failed before
_STORES = {
    "run": runs.get_json,
    "sweep": sweeps.get,
    "plan": plans.get,
    "alert": alerts.get,
    "chat": sessions.get,
    "ask": approvals.get,
    "note": memories.get,
}


def review(lab: Lab, text: str, pieces: Sequence[Piece], calls_now: Sequence[Any] = ()) -> list[Mark]:
    """Return the marks of an answer. `calls_now`: arguments of the calls in the same message."""
    if not text:
        return []
    evidence = evidence_in(piece.data for piece in pieces if piece.kind is PieceKind.EVIDENCE)
    calls = [call["arguments"] for p in pieces if p.kind is PieceKind.MESSAGE for call in p.data["calls"]]
    calls += calls_now
    results = [piece.data["text"] for piece in pieces if piece.kind is PieceKind.RESULT]
    known = CheckContext(
        evidence=evidence,
        look_again=lambda one: _look_again(lab, one),
        exists=lambda found: _exists(lab, found),
        named=lambda names: runs.ids_by_name(lab.db.reader(), names),
        settings=_settings(calls, results),
        said=tuple(piece.data["text"] for piece in pieces if piece.kind is PieceKind.USER),
        done=_done(pieces),
        quotes=(*(json.dumps(arguments, ensure_ascii=False) for arguments in calls), *results),
        refusals=tuple(_refusals(pieces)),
    )
    return check(text, known)


def _done(pieces: Sequence[Piece]) -> frozenset[int]:
    """Return how many calls of each writing tool succeeded, per turn and in total."""
    calls = [piece for piece in pieces if piece.kind is PieceKind.RESULT and piece.data.get("writes")]
    calls = [piece for piece in calls if _NOT_STARTED not in piece.data["text"]]
    in_turns = Counter((piece.turn, piece.data["name"]) for piece in calls)
    in_all = Counter(piece.data["name"] for piece in calls)
    return frozenset({*in_turns.values(), *in_all.values()})


def _refusals(pieces: Sequence[Piece]) -> Iterator[str]:
    """Yield the messages of refusals: the number in `There is no run 123` needs no evidence."""
    for piece in pieces:
        if piece.kind is PieceKind.RESULT and not piece.data["ok"]:
            found = _loaded(piece.data["text"])
            yield from filter(None, (found.get("refused"), found.get("hint")))


def _look_again(lab: Lab, one: Evidence) -> Reading | None:
    try:
        return look(lab, one.kind, one.source)
    except LabwrightError:
        return None


def _exists(lab: Lab, found: str) -> bool:
    """Return whether something has or had this id. A deleted run is not made up."""
    try:
        _STORES[found.partition("-")[0]](lab.db.reader(), found)
    except NotFound:
        return bool(events.after(lab.db.reader(), 0, 1, run_id=found, types=(EventType.RUN_DELETED,)))
    return True


def _settings(calls: Sequence[Any], results: Sequence[str]) -> dict[str, frozenset[float]]:
    """Return parameters with the values that calls gave them or that runs had."""
    found: dict[str, set[float]] = defaultdict(set)
    for name, value in (pair for source in (*calls, *_params(results)) for pair in _pairs(source)):
        found[name.lower()].add(value)
    return {name: frozenset(values) for name, values in found.items()}


def _params(results: Sequence[str]) -> Iterator[Any]:
    for text in results:
        yield from _params_in(_loaded(text))


def _loaded(text: str) -> Any:
    """Return the parsed result, or nothing if it was cut."""
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _params_in(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (value[name] for name in ("params", "command") if name in value)
        yield from (found for item in value.values() for found in _params_in(item))
    elif isinstance(value, list):
        yield from (found for item in value for found in _params_in(item))


def _pairs(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        yield from (pair for key, item in value.items() for pair in _pairs(item, str(key)))
    elif isinstance(value, list):
        yield from (pair for item in value for pair in _pairs(item, name))
    elif isinstance(value, str) and "-" in value:
        yield from ((key, found) for key, found in params_of(value, {}).items() if isinstance(found, float))
    elif isinstance(value, int | float) and not isinstance(value, bool) and name:
        yield name, float(value)
