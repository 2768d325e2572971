"""The verbs of conversations: create, list, change, delete, say, stop. All of them are transactions and nothing else.

Nothing here asks a model: `keeper.py` sees that a session is at work, and lets its turn run.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from labwright.agent.mentions import resolve, with_names
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.event import CHAT_HINT, Hint
from labwright.domain.ids import SESSION, new_id
from labwright.domain.run import name_from
from labwright.domain.session import ApprovalStatus, EndReason, Mode, Piece, PieceKind, Session, SessionStatus
from labwright.planning.plans import stop as stop_plan
from labwright.store import approvals, plans, sessions
from labwright.store.database import Transaction
from labwright.store.idempotency import IdempotencyKey, recall, remember

NEW_TITLE = "New conversation"
_ALL = 1000


def create(lab: Lab, *, title: str | None, mode: Mode, actor: Actor, key: IdempotencyKey | None = None) -> Session:
    at = now()
    session = Session(
        id=new_id(SESSION), title=title or NEW_TITLE, mode=mode, created_at=at, created_by=str(actor), updated_at=at
    )
    with lab.db.transaction() as tx:
        if answer := recall(tx, key):
            return Session.from_dict(json.loads(answer))
        sessions.insert(tx, session, str(actor))
        remember(tx, key, session.to_dict())
    return session


def get(lab: Lab, session_id: str) -> Session:
    return sessions.get(lab.db.reader(), session_id)


def page(lab: Lab, limit: int, before: int | None) -> tuple[list[Session], int | None]:
    """Newest first."""
    return sessions.page(lab.db.reader(), limit, before)


def pieces(lab: Lab, session_id: str, after: int, limit: int) -> list[Piece]:
    get(lab, session_id)
    return sessions.pieces_after(lab.db.reader(), session_id, after, limit)


def update(lab: Lab, session_id: str, changes: dict[str, Any], actor: Actor) -> Session:
    with lab.db.transaction() as tx:
        before = sessions.get(tx.connection, session_id)
        return sessions.change(tx, before, before.evolve(**changes, updated_at=now()), str(actor))


def delete(lab: Lab, session_id: str, actor: Actor) -> None:
    """With all that was said in it; what it started stays."""
    with lab.db.transaction() as tx:
        session = sessions.get(tx.connection, session_id)
        if session.status is SessionStatus.WORKING:
            raise Conflict(f"Session {session_id} is at work.", hint="Stop it first.")
        _withdraw_approvals(tx, session_id, actor)
        sessions.delete(tx, session, str(actor))


def say(
    lab: Lab,
    session_id: str,
    message: str,
    mode: Mode | None,
    actor: Actor,
    key: IdempotencyKey | None = None,
) -> Session:
    """Begins a turn. Answers the session as it was stored: its newest piece is what was said."""
    if not message.strip():
        raise Invalid("There is nothing to answer: the message is empty.")
    mentions = resolve(lab, message)
    with lab.db.transaction() as tx:
        if answer := recall(tx, key):
            return Session.from_dict(json.loads(answer))
        before = sessions.get(tx.connection, session_id)
        begun = before.begin_turn(now(), mode)
        if before.turn == 0 and before.title == NEW_TITLE:
            begun = begun.evolve(title=name_from(with_names(message, mentions)))
        said = {"text": message, "by": str(actor), "mode": begun.mode, "mentions": mentions}
        begun = sessions.append(tx, begun, [(PieceKind.USER, said)])
        sessions.change(tx, before, begun, str(actor))
        remember(tx, key, begun.to_dict())
    lab.publish_hint(Hint(CHAT_HINT, session_id=session_id))
    return begun


def stop(lab: Lab, session_id: str, actor: Actor) -> Session:
    """At once: nothing is written to the turn after this, and what it waited for no longer wakes it.

    The plan that it has made is stopped first: a kill in between leaves a turn that tells of it.
    """
    _check_at_work(get(lab, session_id))
    _stop_planning(lab, session_id, actor)
    with lab.db.transaction() as tx:
        before = sessions.get(tx.connection, session_id)
        _check_at_work(before)
        _withdraw_approvals(tx, session_id, actor)
        ended = {"why": EndReason.STOPPED, "by": str(actor)}
        stopped = before.evolve(status=SessionStatus.IDLE, waits=(), updated_at=now())
        stopped = sessions.append(tx, stopped, [(PieceKind.END, ended)])
        sessions.change(tx, before, stopped, str(actor))
    lab.publish_hint(Hint(CHAT_HINT, session_id=session_id))
    return stopped


def _check_at_work(session: Session) -> None:
    if session.status is SessionStatus.IDLE and not session.waits:
        raise Conflict(f"Session {session.id} is not at work.", hint="There is nothing to stop.")


def _stop_planning(lab: Lab, session_id: str, actor: Actor) -> None:
    for plan in plans.compiled_for(lab.db.reader(), str(Actor(Scope.AGENT, session_id))):
        with contextlib.suppress(Conflict):  # done by now
            stop_plan(lab, plan.id, actor)


def _withdraw_approvals(tx: Transaction, session_id: str, actor: Actor) -> None:
    found, _ = approvals.page(tx.connection, ApprovalStatus.PENDING, session_id, _ALL, None)
    for approval in found:
        approvals.change(tx, approval.withdrawn(now()), str(actor))
