"""/suggestions: what assistants suggest so that the work goes better. A person accepts or dismisses it."""

from __future__ import annotations

from fastapi import APIRouter, Request

from labwright.agent.conversation import suggestions
from labwright.domain.actor import Scope
from labwright.domain.errors import Invalid
from labwright.domain.session import SuggestionStatus
from labwright.server.auth import PERSON, actor_of, allow
from labwright.server.models.chat import SuggestionAccept, SuggestionOut
from labwright.server.requests import StrictJsonRoute, lab_of

router = APIRouter(prefix="/suggestions", route_class=StrictJsonRoute, tags=["sessions"])


@router.get("", dependencies=[allow(Scope.VIEWER)])
def list_suggestions(
    request: Request, session_id: str | None = None, status: SuggestionStatus | None = None
) -> list[SuggestionOut]:
    """Newest first."""
    return [SuggestionOut(**found) for found in suggestions.page(lab_of(request), session_id, status)]


@router.post("/{suggestion_id}/accept", dependencies=[PERSON()])
def accept_suggestion(suggestion_id: str, body: SuggestionAccept, request: Request) -> SuggestionOut:
    """Into a skill of the project, which conversations are told; or its template into the folder `templates`."""
    lab, actor = lab_of(request), actor_of(request)
    if body.into == "skill":
        name = body.name or suggestions.SKILL
        return SuggestionOut(**suggestions.accept_into_skill(lab, suggestion_id, name, actor))
    if body.name is None:
        raise Invalid("A template needs a name.", hint="Give the name of a file, such as lr.yaml.", field=("name",))
    return SuggestionOut(**suggestions.accept_into_template(lab, suggestion_id, body.name, actor))


@router.post("/{suggestion_id}/dismiss", dependencies=[PERSON()])
def dismiss_suggestion(suggestion_id: str, request: Request) -> SuggestionOut:
    """It is not shown among the open ones any more."""
    return SuggestionOut(**suggestions.dismiss(lab_of(request), suggestion_id, actor_of(request)))
