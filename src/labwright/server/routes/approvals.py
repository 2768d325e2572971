"""/approvals: what agents asked for. Only a person answers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from labwright.agent import approvals
from labwright.domain.actor import Scope
from labwright.domain.approval import Approval, ApprovalStatus
from labwright.server.auth import PERSON, actor_of, allow
from labwright.server.chat_models import ApprovalAnswer
from labwright.server.context import lab_of
from labwright.server.strict_json import StrictJsonRoute

router = APIRouter(prefix="/approvals", route_class=StrictJsonRoute, tags=["sessions"])


@router.get("", response_model=list[Approval], dependencies=[allow(Scope.VIEWER)])
def list_approvals(
    request: Request,
    response: Response,
    status: ApprovalStatus | None = None,
    session_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[dict[str, Any]]:
    """Newest first."""
    found, following = approvals.page(lab_of(request), status, session_id, limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return [approval.to_dict() for approval in found]


@router.post("/{approval_id}/respond", response_model=Approval, dependencies=[PERSON()])
def respond_to_approval(approval_id: str, body: ApprovalAnswer, request: Request) -> dict[str, Any]:
    """The turn that asked goes on with the answer; what is approved is done as you."""
    answered = approvals.respond(
        lab_of(request), approval_id, approved=body.approved, reason=body.reason, actor=actor_of(request)
    )
    return answered.to_dict()
