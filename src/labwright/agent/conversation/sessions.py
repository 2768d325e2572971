"""Create, list, change, delete and stop conversations, and add a message to one. Each verb is one transaction.

No model is called here: `worker.py` sees that a session is working and runs its turn.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid, LabwrightError
from labwright.domain.event import CHAT_HINT, Hint
from labwright.domain.ids import SESSION, new_id
from labwright.domain.run import name_from
from labwright.domain.session import ApprovalStatus, EndReason, Mode, Piece, PieceKind, Session, SessionStatus
from labwright.planning import plans as plan_verbs
from labwright.services.runs import verbs as run_verbs
from labwright.services.sweeps import results as sweep_views
from labwright.store import approvals, plans, sessions
from labwright.store.database import Transaction
from labwright.store.idempotency import IdempotencyKey, recall, remember

NEW_TITLE = "New conversation"
_ALL = 1000
_MENTION = re.compile(r"(?<![\w@.])@([A-Za-z0-9][\w.-]*[\w]|[A-Za-z0-9])")
_MAX_MENTIONS = 20


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
    """Return the newest sessions first, and the cursor of the next page."""
    return sessions.page(lab.db.reader(), limit, before)


def pieces(lab: Lab, session_id: str, after: int, limit: int) -> list[Piece]:
    get(lab, session_id)
    return sessions.pieces_after(lab.db.reader(), session_id, after, limit)


def update(lab: Lab, session_id: str, changes: dict[str, Any], actor: Actor) -> Session:
    with lab.db.transaction() as tx:
        before = sessions.get(tx.connection, session_id)
        return sessions.change(tx, before, before.evolve(**changes, updated_at=now()), str(actor))


def delete(lab: Lab, session_id: str, actor: Actor) -> None:
    """Delete the session and its log. Runs and plans that it started stay."""
    with lab.db.transaction() as tx:
        session = sessions.get(tx.connection, session_id)
        if session.status is SessionStatus.WORKING:
            raise Conflict(f"Session {session_id} is working.", hint="Stop it first.")
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
    """Start a turn with a message. Return the stored session; its newest piece is the message."""
    if not message.strip():
        raise Invalid("The message is empty.")
    mentions = resolve(lab, message)
    with lab.db.transaction() as tx:
        if answer := recall(tx, key):
            return Session.from_dict(json.loads(answer))
        before = sessions.get(tx.connection, session_id)
        started = before.begin_turn(now(), mode)
        if before.turn == 0 and before.title == NEW_TITLE:
            started = started.evolve(title=name_from(with_names(message, mentions)))
        piece = {"text": message, "by": str(actor), "mode": started.mode, "mentions": mentions}
        started = sessions.append(tx, started, [(PieceKind.USER, piece)])
        sessions.change(tx, before, started, str(actor))
        remember(tx, key, started.to_dict())
    lab.publish_hint(Hint(CHAT_HINT, session_id=session_id))
    return started


def stop(lab: Lab, session_id: str, actor: Actor) -> Session:
    """Stop the turn and cancel the session's waits. The turn writes nothing after this.

    If the turn compiles a plan, that plan is stopped first: after a kill in between, the turn still reports it.
    """
    _check_can_stop(get(lab, session_id))
    for plan in plans.compiled_for(lab.db.reader(), str(Actor(Scope.AGENT, session_id))):
        with contextlib.suppress(Conflict):  # the compilation has ended meanwhile
            plan_verbs.stop(lab, plan.id, actor)
    with lab.db.transaction() as tx:
        before = sessions.get(tx.connection, session_id)
        _check_can_stop(before)
        _withdraw_approvals(tx, session_id, actor)
        ended = {"why": EndReason.STOPPED, "by": str(actor)}
        stopped = before.evolve(status=SessionStatus.IDLE, waits=(), updated_at=now())
        stopped = sessions.append(tx, stopped, [(PieceKind.END, ended)])
        sessions.change(tx, before, stopped, str(actor))
    lab.publish_hint(Hint(CHAT_HINT, session_id=session_id))
    return stopped


def _check_can_stop(session: Session) -> None:
    if session.status is SessionStatus.IDLE and not session.waits:
        raise Conflict(f"Session {session.id} is not working.", hint="There is nothing to stop.")


def _withdraw_approvals(tx: Transaction, session_id: str, actor: Actor) -> None:
    pending, _ = approvals.page(tx.connection, ApprovalStatus.PENDING, session_id, _ALL, None)
    for approval in pending:
        approvals.change(tx, approval.withdrawn(now()), str(actor))


def resolve(lab: Lab, message: str) -> list[dict[str, Any]]:
    """Return what each `@run-…`, `@sweep-…`, `@plan-…`, `@last` or `@name` of a run in the message refers to."""
    mentions = []
    for name in list(dict.fromkeys(_MENTION.findall(message)))[:_MAX_MENTIONS]:
        try:
            facts = _facts(lab, name)
        except LabwrightError as error:
            facts = {"kind": "unknown", "text": f"not known: {error.message}"}
        mentions.append({"mention": f"@{name}", **facts})
    return mentions


def with_names(message: str, mentions: list[dict[str, Any]]) -> str:
    """Return the message with the names of things in place of their ids."""
    names = {mention["mention"]: mention["name"] for mention in mentions if mention.get("name", "").strip()}
    return _MENTION.sub(lambda match: names.get(match[0], match[0]), message)


def _facts(lab: Lab, name: str) -> dict[str, Any]:
    if name.startswith("sweep-"):
        sweep = sweep_views.get(lab, name)
        done, total = sweep["progress"]["finished"], sweep["progress"]["total"]
        text = f"the sweep {sweep['name']!r}, {sweep['status']}, {done} of {total} runs finished"
        return {"kind": "sweep", "id": sweep["id"], "name": sweep["name"], "text": text}
    if name.startswith("plan-"):
        plan = plan_verbs.get_document(lab, name)
        text = f"the plan {plan['title']!r}, {plan['status']}"
        return {"kind": "plan", "id": plan["id"], "name": plan["title"], "text": text}
    run = run_verbs.find(lab, name)
    text = f"the run {run.id} {run.name!r}, {run.status}"  # with its id: another run may take the name later
    return {"kind": "run", "id": run.id, "name": run.name, "text": text}
