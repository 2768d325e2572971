"""The verbs of approvals: list, respond. Asking is the turn's own business."""

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
    """The turn that asked goes on with the answer, in the same transaction: a kill in between loses neither."""
    with lab.db.transaction() as tx:
        answered = approvals.get(tx.connection, approval_id).answered(approved, reason, actor, now())
        approvals.change(tx, answered, str(actor))
        before = sessions.get(tx.connection, answered.session_id)
        if before.status is SessionStatus.ASKING and before.turn == answered.turn:
            going_on = before.evolve(status=SessionStatus.WORKING, updated_at=now())
            going_on = sessions.append(tx, going_on, [(PieceKind.APPROVAL, answered.to_dict())])
            sessions.change(tx, before, going_on, str(actor))
    lab.publish_hint(Hint(CHAT_HINT, session_id=answered.session_id))
    return answered
