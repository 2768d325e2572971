"""/plans: the documents. Agents write them; only a person deletes them. Their workspaces are in `plan_work.py`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from labwright.domain.errors import Invalid
from labwright.domain.plan import PlanStatus
from labwright.planning import plans
from labwright.server.auth import PERSON, PLANNERS, READERS, WRITERS, actor_of
from labwright.server.models.plans import FormatOut, PlanIn, PlanOut, PlanPatch, PlanSummary, PlanTextIn, PlanVersionOut
from labwright.server.requests import StrictJsonRoute, idempotency_key, lab_of
from labwright.services import ownership

router = APIRouter(prefix="/plans", route_class=StrictJsonRoute, tags=["plans"])
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Cursor = Annotated[int | None, Query(ge=0, le=2**62)]


@router.post("", status_code=201, dependencies=[PLANNERS()])
def create_plan(body: PlanIn, request: Request, key: Key = None) -> PlanOut:
    """Keep a plan, whatever its form; `format` says what is wrong with it, line by line.

    With `compile` and no text, the plan is made from its goal.
    """
    made = plans.create(
        lab_of(request),
        {"title": body.title, "goal": body.goal, "raw_markdown": body.raw_markdown},
        session_id=body.session_id,
        options=body.compile.value() if body.compile else None,
        actor=actor_of(request),
        key=idempotency_key(key, request, body),
    )
    return PlanOut(**made)


@router.post("/check", dependencies=[READERS()])
def check_plan(body: PlanTextIn) -> FormatOut:
    """What is wrong with the form of a text, line by line. Nothing is kept."""
    return FormatOut(**plans.check_format(body.raw_markdown))


@router.get("", dependencies=[READERS()])
def list_plans(
    request: Request,
    response: Response,
    status: Annotated[
        str | None, Query(description="one or more, comma-separated; by default all but archived")
    ] = None,
    session_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Cursor = None,
) -> list[PlanSummary]:
    """Newest first, without their texts."""
    found, following = plans.page(lab_of(request), _statuses(status), session_id, limit, cursor)
    _point_on(response, following)
    return [PlanSummary.of(plan) for plan in found]


def _statuses(text: str | None) -> tuple[PlanStatus, ...]:
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in set(PlanStatus):
            raise Invalid(f"{name!r} is not a status of a plan.", hint=f"Choose: {', '.join(PlanStatus)}.")
    return tuple(PlanStatus(name) for name in names)


def _point_on(response: Response, following: int | None) -> None:
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)


@router.get("/{plan_id}", dependencies=[READERS()])
def get_plan(plan_id: str, request: Request) -> PlanOut:
    """One plan with its text, its sections, and what is wrong with its form."""
    return PlanOut(**plans.get(lab_of(request), plan_id))


@router.patch("/{plan_id}", dependencies=[PLANNERS()])
def change_plan(plan_id: str, body: PlanPatch, request: Request) -> PlanOut:
    """Another text, title or goal is a new version, and takes an approval back."""
    changes: dict[str, Any] = body.model_dump(exclude_none=True, exclude={"version"})
    return PlanOut(**plans.edit(lab_of(request), plan_id, changes, actor_of(request), body.version))


@router.delete("/{plan_id}", status_code=204, dependencies=[PERSON()])
def delete_plan(plan_id: str, request: Request) -> Response:
    """With all its versions and files; not while it is executing."""
    plans.delete(lab_of(request), plan_id, actor_of(request))
    return Response(status_code=204)


@router.get("/{plan_id}/versions", dependencies=[READERS()])
def list_plan_versions(
    plan_id: str,
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Cursor = None,
) -> list[PlanVersionOut]:
    """Every text that was saved, newest first."""
    found, following = plans.versions(lab_of(request), plan_id, limit, cursor)
    _point_on(response, following)
    return [PlanVersionOut(**version.to_dict()) for version in found]


@router.post("/{plan_id}/archive", dependencies=[WRITERS()])
def archive_plan(plan_id: str, request: Request) -> PlanOut:
    """Out of the usual lists, not deleted."""
    lab = lab_of(request)
    ownership.check_archiving(lab, plan_id, actor_of(request))
    plans.archive(lab, plan_id, actor_of(request))
    return PlanOut(**plans.get(lab, plan_id))
