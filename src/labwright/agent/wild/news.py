"""What a loop says in its conversation: a notice for each thing that happened, an answer when it ends or asks."""

from __future__ import annotations

import contextlib
from dataclasses import asdict

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Hint
from labwright.domain.session import EndReason, PieceKind, SessionStatus
from labwright.domain.wild import Iteration, Wild
from labwright.llm.model import Usage
from labwright.planning.results.words import params_text
from labwright.store import sessions
from labwright.store.database import Transaction
from labwright.store.sessions import NewPiece


def decided_in_words(iteration: Iteration, key: str) -> str:
    head = f"iteration {iteration.number} ({params_text(iteration.change)})"
    if iteration.decision is None:
        return f"{head}: {iteration.hypothesis}"
    found = iteration.result["text"] if iteration.result else f"no value of {key}"
    return f"{head}: {iteration.decision['verdict']}. {found}; {iteration.decision['reason']}"


def end_in_words(wild: Wild) -> str:
    best = f" Best: {params_text(wild.best['params'])} (iteration {wild.best['number']})." if wild.best else ""
    tail = f" The whole report: labwright wild report {wild.id}" if wild.report else ""
    return f"Wild loop {wild.id} is {wild.status}: {wild.status_reason}.{best}{tail}"


def tell(lab: Lab, tx: Transaction, wild: Wild, words: str) -> None:
    """In the transaction of what it tells of."""
    _append(lab, tx, wild, (PieceKind.NOTICE, {"text": words, "wild_id": wild.id}))


def tell_of_end(lab: Lab, tx: Transaction, wild: Wild) -> None:
    """A turn of its own, so that whoever follows sees it end; a notice, if another turn is going on."""
    words = end_in_words(wild)
    if wild.session_id is None:
        return
    with contextlib.suppress(NotFound):
        if sessions.get(tx.connection, wild.session_id).status is not SessionStatus.IDLE:
            tell(lab, tx, wild, words)
            return
    ended = (PieceKind.END, {"why": EndReason.DONE, "wild_id": wild.id})
    _append(lab, tx, wild, *answer(words), ended, turns=1)


def answer(words: str) -> tuple[NewPiece, NewPiece]:
    """What is said, and that it is whole. No model wrote it."""
    whole = {"text": words, "calls": [], "marks": [], "model": "", "usage": asdict(Usage())}
    return (PieceKind.TEXT, {"text": words}), (PieceKind.MESSAGE, whole)


def _append(lab: Lab, tx: Transaction, wild: Wild, *pieces: NewPiece, turns: int = 0) -> None:
    if wild.session_id is None:
        return
    try:
        before = sessions.get(tx.connection, wild.session_id)
    except NotFound:
        return  # the conversation was deleted; what it started goes on
    after = sessions.append(tx, before.evolve(turn=before.turn + turns, updated_at=now()), pieces)
    sessions.change(tx, before, after, str(Actor(Scope.AGENT, wild.id)))
    lab.publish_hint(Hint("chat", session_id=wild.session_id))
