"""/approvals: what agents asked for. Only a person answers, or who was sent a token for that one question."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from labwright.agent.conversation import approvals
from labwright.domain.actor import Actor, Scope
from labwright.domain.session import ApprovalRequest, ApprovalStatus
from labwright.server.auth import actor_of, allow
from labwright.server.models.chat import ApprovalAnswer
from labwright.server.requests import StrictJsonRoute, lab_of

router = APIRouter(prefix="/approvals", route_class=StrictJsonRoute, tags=["sessions"])


@router.get("", response_model=list[ApprovalRequest], dependencies=[allow(Scope.VIEWER)])
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


@router.post("/{approval_id}/respond", response_model=ApprovalRequest, dependencies=[allow(Scope.ANSWER)])
def respond_to_approval(approval_id: str, body: ApprovalAnswer, request: Request) -> dict[str, Any]:
    """The turn that asked goes on with the answer; what is approved is done as you.

    Also with the token of scope `answer` that a channel was sent with the question: for that question, once.
    """
    answered = approvals.respond(
        lab_of(request), approval_id, approved=body.approved, reason=body.reason, actor=_person(actor_of(request))
    )
    return answered.to_dict()


def _person(actor: Actor) -> Actor:
    """Whom a person has given the power to answer, by naming a channel in the settings, answers for that person."""
    return Actor(Scope.PERSON, "webhook") if actor.scope is Scope.ANSWER else actor
