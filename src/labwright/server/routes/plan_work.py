"""/plans/{plan_id}/…: from a document to a workspace that may run, its review, and its execution."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from labwright.domain.errors import Invalid
from labwright.planning import plans
from labwright.server.auth import PERSON, PLANNERS, READERS, WRITERS, actor_of
from labwright.server.models.plans import (
    ApproveIn,
    ChangesOut,
    CompilationOut,
    CompileIn,
    FileIn,
    FileOut,
    PlanOut,
    ReportOut,
    ReviewIn,
    ValidateIn,
    WorkspaceOut,
)
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.services import ownership

router = APIRouter(prefix="/plans/{plan_id}", route_class=StrictJsonRoute, tags=["plans"])


@router.post("/compile", status_code=202, dependencies=[PLANNERS()])
def compile_plan(plan_id: str, request: Request, body: CompileIn | None = None) -> PlanOut:
    """Make the workspace, in the background: `planning` of the plan and `plan.node` events tell how far it is.

    From the saved text where there is one, else from the goal. What is done already is not done again. While one is
    under way, another is a 409.
    """
    options = body.value() if body else plans.CompileOptions()
    return PlanOut(**plans.compile_plan(lab_of(request), plan_id, options, actor_of(request)))


@router.get("/workspace", dependencies=[READERS()])
def get_plan_workspace(plan_id: str, request: Request) -> WorkspaceOut:
    """What there is to review: files, validation, rehearsal, and the digest of the bytes as they now are."""
    return WorkspaceOut(**plans.workspace_view(lab_of(request), plan_id))


@router.get("/workspace/files/{path:path}", dependencies=[READERS()])
def read_plan_file(plan_id: str, path: str, request: Request) -> FileOut:
    """One file, as text."""
    return FileOut(**plans.read_file(lab_of(request), plan_id, path))


@router.put("/workspace/files/{path:path}", dependencies=[WRITERS()])
def write_plan_file(plan_id: str, path: str, body: FileIn, request: Request) -> FileOut:
    """An edit takes an approval back; validate the plan afterwards."""
    made = plans.write_file(lab_of(request), plan_id, path, body.content, body.sha256, actor_of(request))
    return FileOut(**made)


@router.get("/compilations", dependencies=[READERS()])
def list_plan_compilations(plan_id: str, request: Request) -> list[CompilationOut]:
    """Those that came as far as their checks, the newest first; the last twenty are kept."""
    return [CompilationOut(**one) for one in plans.compilations_view(lab_of(request), plan_id)]


@router.get("/changes", dependencies=[READERS()])
def get_plan_changes(
    plan_id: str,
    request: Request,
    before: Annotated[int, Query(ge=1, le=1_000_000)],
    after: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
) -> ChangesOut:
    """What changed in plan, IR, code and tests between two compilations; without `after`, to the files as they are."""
    return ChangesOut(**plans.changes_view(lab_of(request), plan_id, before, after))


@router.post("/validate", status_code=202, dependencies=[PLANNERS()])
def validate_plan(plan_id: str, request: Request, body: ValidateIn | None = None) -> PlanOut:
    """Every check again on the files as they are, in the background."""
    rehearsal = body.rehearsal if body else None
    return PlanOut(**plans.validate(lab_of(request), plan_id, actor_of(request), rehearsal))


@router.post("/review", dependencies=[PERSON()])
def review_plan(plan_id: str, body: ReviewIn, request: Request) -> PlanOut:
    """Approve a digest; or reject, with a reason and the node that is to be done again."""
    lab, actor = lab_of(request), actor_of(request)
    if not body.approved:
        return PlanOut(**plans.reject(lab, plan_id, body.reason, body.node, actor))
    if body.digest is None:
        hint = "GET /plans/{plan_id}/workspace has the digest of what you look at."
        raise Invalid("An approval needs the digest of what was looked at.", hint=hint, field=("digest",))
    return PlanOut(**plans.approve(lab, plan_id, body.digest, actor, body.reason))


@router.post("/approve", dependencies=[PERSON()])
def approve_plan(plan_id: str, body: ApproveIn, request: Request) -> PlanOut:
    """The same as a review with `approved: true`. Answers when the final check is done."""
    return PlanOut(**plans.approve(lab_of(request), plan_id, body.digest, actor_of(request)))


@router.post("/execute", status_code=202, dependencies=[WRITERS()])
def execute_plan(plan_id: str, request: Request) -> PlanOut:
    """Run it: only what is approved, ready for a run, and still what was approved; else 409 with what changed."""
    return PlanOut(**plans.execute(lab_of(request), plan_id, actor_of(request)))


@router.post("/stop", dependencies=[WRITERS()])
def stop_plan(plan_id: str, request: Request) -> PlanOut:
    """End an execution, or a compilation, with all the runs that it started. An agent ends what it began."""
    ownership.check_plan(lab_of(request), plan_id, actor_of(request))
    return PlanOut(**plans.stop(lab_of(request), plan_id, actor_of(request)))


@router.get("/report", dependencies=[READERS()])
def get_plan_report(plan_id: str, request: Request) -> ReportOut:
    """What an execution found out."""
    return ReportOut(**plans.results_view(lab_of(request), plan_id))
