"""/wild: experiments one after another until a goal is met with evidence."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from labwright.agent.wild import verbs
from labwright.agent.wild.wanted import NewWild
from labwright.domain.wild import Wild
from labwright.server.auth import READERS, WRITERS, actor_of
from labwright.server.models.sweeps import seed_values
from labwright.server.models.wild import WildIn, WildOut, WildResume, WildSteer
from labwright.server.requests import StrictJsonRoute, idempotency_key, lab_of
from labwright.services import ownership

router = APIRouter(prefix="/wild", route_class=StrictJsonRoute, tags=["wild"])
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


@router.post("/start", status_code=201, dependencies=[WRITERS()])
def start_wild(body: WildIn, request: Request, key: Key = None) -> WildOut:
    """Begin a loop. What the goal leaves open is a 422 with the question, and nothing is made."""
    given = body.model_dump(include={"goal", "session_id", "script", "parameters", "gpus", "parallel"})
    wanted = NewWild(
        **given,
        budget=body.budget.value() if body.budget else {},
        protect=tuple(body.protect),
        metric=body.metric.model_dump() if body.metric else None,
        seeds=seed_values(body.seeds),
    )
    search: str = request.app.state.models.proposer or verbs.RULES
    once = idempotency_key(key, request, body)
    return _shown(request, verbs.start(lab_of(request), wanted, search, actor_of(request), once))


@router.get("", dependencies=[READERS()])
def list_wild(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[WildOut]:
    """Newest first."""
    found, following = verbs.page(lab_of(request), limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return [_shown(request, wild) for wild in found]


@router.get("/{wild_id}", dependencies=[READERS()])
def get_wild(wild_id: str, request: Request) -> WildOut:
    return _shown(request, verbs.get(lab_of(request), wild_id))


@router.post("/{wild_id}/pause", dependencies=[WRITERS()])
def pause_wild(wild_id: str, request: Request) -> WildOut:
    """Nothing new begins; what runs goes on. An agent holds what it began."""
    ownership.check_wild(lab_of(request), wild_id, actor_of(request))
    return _shown(request, verbs.pause(lab_of(request), wild_id, actor_of(request)))


@router.post("/{wild_id}/resume", dependencies=[WRITERS()])
def resume_wild(wild_id: str, request: Request, body: WildResume | None = None) -> WildOut:
    """Go on after a pause, with another budget if a person gives one. An agent resumes what it began."""
    ownership.check_wild(lab_of(request), wild_id, actor_of(request))
    budget: dict[str, Any] = body.budget.value() if body and body.budget else {}
    return _shown(request, verbs.resume(lab_of(request), wild_id, actor_of(request), budget))


@router.post("/{wild_id}/stop", dependencies=[WRITERS()])
def stop_wild(wild_id: str, request: Request) -> WildOut:
    """End it with all of its runs; the report says what was found until now. An agent ends what it began."""
    ownership.check_wild(lab_of(request), wild_id, actor_of(request))
    return _shown(request, verbs.stop(lab_of(request), wild_id, actor_of(request)))


@router.post("/{wild_id}/steer", dependencies=[WRITERS()])
def steer_wild(wild_id: str, body: WildSteer, request: Request, key: Key = None) -> WildOut:
    """Words that the next proposal takes into account. An agent steers what it began."""
    ownership.check_wild(lab_of(request), wild_id, actor_of(request))
    once = idempotency_key(key, request, body)
    return _shown(request, verbs.steer(lab_of(request), wild_id, body.text, actor_of(request), once))


def _shown(request: Request, wild: Wild) -> WildOut:
    return WildOut(**verbs.view(lab_of(request), wild))
