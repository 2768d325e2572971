"""/sweeps."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from labwright.server.auth import READERS, WRITERS, actor_of
from labwright.server.context import idempotency_key, lab_of
from labwright.server.models import SweepOut, WildSweepIn
from labwright.server.strict_json import StrictJsonRoute
from labwright.services import sweeps

router = APIRouter(prefix="/sweeps", route_class=StrictJsonRoute, tags=["sweeps"])


@router.post("/wild", status_code=201, dependencies=[WRITERS()])
def create_wild_sweep(
    body: WildSweepIn,
    request: Request,
    key: Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)] = None,
) -> SweepOut:
    """An empty sweep that runs join by `sweep_id`."""
    lab = lab_of(request)
    sweep = sweeps.create_wild(
        lab,
        name=body.name,
        goal=body.goal,
        chat_session_id=body.chat_session_id,
        parallel=body.parallel,
        actor=actor_of(request),
        key=idempotency_key(key, request, body),
    )
    return SweepOut(**sweeps.view(lab, sweep))


@router.get("", response_model=list[SweepOut], dependencies=[READERS()])
def list_sweeps(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[dict[str, Any]]:
    found, following = sweeps.page(lab_of(request), limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return found


@router.get("/{sweep_id}", dependencies=[READERS()])
def get_sweep(sweep_id: str, request: Request) -> SweepOut:
    return SweepOut(**sweeps.get(lab_of(request), sweep_id))
