"""List approvals and respond to one. Turns create them (`TurnLog.ask`)."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.event import CHAT_HINT, Hint
from labwright.domain.session import ApprovalRequest, PieceKind, SessionStatus
from labwright.store import approvals, sessions


def page(
    lab: Lab, status: str | None, session_id: str | None, limit: int, before: int | None
) -> tuple[list[ApprovalRequest], int | None]:
    return approvals.page(lab.db.reader(), status, session_id, limit, before)


def respond(lab: Lab, approval_id: str, *, approved: bool, reason: str, actor: Actor) -> ApprovalRequest:
    """Store the answer and let the turn continue, in one transaction, so that a kill loses neither."""
    with lab.db.transaction() as tx:
        answered = approvals.get(tx.connection, approval_id).answered(approved, reason, actor, now())
        approvals.change(tx, answered, str(actor))
        before = sessions.get(tx.connection, answered.session_id)
        if before.status is SessionStatus.ASKING and before.turn == answered.turn:
            working = before.evolve(status=SessionStatus.WORKING, updated_at=now())
            working = sessions.append(tx, working, [(PieceKind.APPROVAL, answered.to_dict())])
            sessions.change(tx, before, working, str(actor))
    lab.publish_hint(Hint(CHAT_HINT, session_id=answered.session_id))
    return answered
