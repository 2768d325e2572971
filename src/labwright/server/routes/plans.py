"""/plans: documents, their workspaces, review and execution. Agents write plans; only a person deletes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, Field

from labwright.domain.errors import Invalid
from labwright.domain.plan import PlanStatus
from labwright.planning import plans
from labwright.server.auth import PERSON, PLANNERS, READERS, WRITERS, actor_of
from labwright.server.models.plans import (
    ApproveIn,
    ChangesOut,
    CompilationOut,
    CompileIn,
    FileIn,
    FileOut,
    FormatOut,
    PlanIn,
    PlanOut,
    PlanPatch,
    PlanSummary,
    PlanTextIn,
    PlanVersionOut,
    ReportOut,
    ReviewIn,
    ValidateIn,
    WorkspaceOut,
)
from labwright.server.requests import StrictJsonRoute, idempotency_key, lab_of
from labwright.services import ownership

router = APIRouter(prefix="/plans", route_class=StrictJsonRoute, tags=["plans"])
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Cursor = Annotated[int | None, Query(ge=0, le=2**62)]


@router.post("", status_code=201, dependencies=[PLANNERS()])
def create_plan(body: PlanIn, request: Request, key: Key = None) -> PlanOut:
    """Save a plan. `format` lists errors in its text by line; they do not prevent saving.

    With `compile` and no text, the plan is written from its goal.
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
    """Check the format of a text and return its errors by line. Nothing is saved."""
    return FormatOut(**plans.check_format(body.raw_markdown))


@router.get("", dependencies=[READERS()])
def list_plans(
    request: Request,
    response: Response,
    status: Annotated[
        str | None, Query(description="one or more, comma-separated; default: all except archived")
    ] = None,
    session_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Cursor = None,
) -> list[PlanSummary]:
    """List plans, newest first, without their texts."""
    found, following = plans.page(lab_of(request), _statuses(status), session_id, limit, cursor)
    _set_next_cursor(response, following)
    return [PlanSummary.of(plan) for plan in found]


def _statuses(text: str | None) -> tuple[PlanStatus, ...]:
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in set(PlanStatus):
            raise Invalid(f"{name!r} is not a plan status.", hint=f"Choose: {', '.join(PlanStatus)}.")
    return tuple(PlanStatus(name) for name in names)


def _set_next_cursor(response: Response, following: int | None) -> None:
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)


@router.get("/{plan_id}", dependencies=[READERS()])
def get_plan(plan_id: str, request: Request) -> PlanOut:
    """Return one plan with its text, its sections and format errors."""
    return PlanOut(**plans.get(lab_of(request), plan_id))


@router.patch("/{plan_id}", dependencies=[PLANNERS()])
def change_plan(plan_id: str, body: PlanPatch, request: Request) -> PlanOut:
    """Change text, title or goal. This creates a new version and withdraws an approval."""
    changes: dict[str, Any] = body.model_dump(exclude_none=True, exclude={"version"})
    return PlanOut(**plans.edit(lab_of(request), plan_id, changes, actor_of(request), body.version))


@router.delete("/{plan_id}", status_code=204, dependencies=[PERSON()])
def delete_plan(plan_id: str, request: Request) -> Response:
    """Delete a plan with all versions and files. An executing plan cannot be deleted."""
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
    """List all saved versions, newest first."""
    found, following = plans.versions(lab_of(request), plan_id, limit, cursor)
    _set_next_cursor(response, following)
    return [PlanVersionOut(**version.to_dict()) for version in found]


@router.post("/{plan_id}/archive", dependencies=[WRITERS()])
def archive_plan(plan_id: str, request: Request) -> PlanOut:
    """Hide a plan from the default lists. It cannot be changed any more."""
    lab = lab_of(request)
    ownership.check_archiving(lab, plan_id, actor_of(request))
    plans.archive(lab, plan_id, actor_of(request))
    return PlanOut(**plans.get(lab, plan_id))


@router.post("/{plan_id}/compile", status_code=202, dependencies=[PLANNERS()])
def compile_plan(plan_id: str, request: Request, body: CompileIn | None = None) -> PlanOut:
    """Create the workspace in the background. `planning` of the plan and `plan.node` events report the progress.

    The source is the saved text, or else the goal. Finished steps are not repeated. A second request at the same time
    is a 409.
    """
    options = body.value() if body else plans.CompileOptions()
    return PlanOut(**plans.compile_plan(lab_of(request), plan_id, options, actor_of(request)))


@router.get("/{plan_id}/workspace", dependencies=[READERS()])
def get_plan_workspace(plan_id: str, request: Request) -> WorkspaceOut:
    """Return what to review: files, validation, rehearsal, and the digest of the current files."""
    return WorkspaceOut(**plans.workspace_view(lab_of(request), plan_id))


@router.get("/{plan_id}/workspace/files/{path:path}", dependencies=[READERS()])
def read_plan_file(plan_id: str, path: str, request: Request) -> FileOut:
    """Return one file as text."""
    return FileOut(**plans.read_file(lab_of(request), plan_id, path))


@router.put("/{plan_id}/workspace/files/{path:path}", dependencies=[WRITERS()])
def write_plan_file(plan_id: str, path: str, body: FileIn, request: Request) -> FileOut:
    """Write a file. This withdraws an approval; validate the plan afterwards."""
    made = plans.write_file(lab_of(request), plan_id, path, body.content, body.sha256, actor_of(request))
    return FileOut(**made)


@router.get("/{plan_id}/compilations", dependencies=[READERS()])
def list_plan_compilations(plan_id: str, request: Request) -> list[CompilationOut]:
    """List compilations that reached their checks, newest first. The last twenty are kept."""
    return [CompilationOut(**one) for one in plans.compilations_view(lab_of(request), plan_id)]


@router.get("/{plan_id}/changes", dependencies=[READERS()])
def get_plan_changes(
    plan_id: str,
    request: Request,
    before: Annotated[int, Query(ge=1, le=1_000_000)],
    after: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
) -> ChangesOut:
    """Return changes in plan, IR, code and tests between two compilations, or up to the current files."""
    return ChangesOut(**plans.changes_view(lab_of(request), plan_id, before, after))


@router.post("/{plan_id}/validate", status_code=202, dependencies=[PLANNERS()])
def validate_plan(plan_id: str, request: Request, body: ValidateIn | None = None) -> PlanOut:
    """Run every check again on the current files, in the background."""
    rehearsal = body.rehearsal if body else None
    return PlanOut(**plans.validate(lab_of(request), plan_id, actor_of(request), rehearsal))


@router.post("/{plan_id}/review", dependencies=[PERSON()])
def review_plan(plan_id: str, body: ReviewIn, request: Request) -> PlanOut:
    """Approve a digest, or reject it with a reason and the step to redo."""
    lab, actor = lab_of(request), actor_of(request)
    if not body.approved:
        return PlanOut(**plans.reject(lab, plan_id, body.reason, body.node, actor))
    if body.digest is None:
        hint = "GET /plans/{plan_id}/workspace returns the digest."
        raise Invalid("An approval needs the digest of the reviewed files.", hint=hint, field=("digest",))
    return PlanOut(**plans.approve(lab, plan_id, body.digest, actor, body.reason))


@router.post("/{plan_id}/approve", dependencies=[PERSON()])
def approve_plan(plan_id: str, body: ApproveIn, request: Request) -> PlanOut:
    """Approve a digest, like a review with `approved: true`. Returns after the final check."""
    return PlanOut(**plans.approve(lab_of(request), plan_id, body.digest, actor_of(request)))


@router.post("/{plan_id}/execute", status_code=202, dependencies=[WRITERS()])
def execute_plan(plan_id: str, request: Request) -> PlanOut:
    """Execute an approved plan that is ready to run. If anything has changed since, the response is a 409."""
    return PlanOut(**plans.execute(lab_of(request), plan_id, actor_of(request)))


@router.post("/{plan_id}/stop", dependencies=[WRITERS()])
def stop_plan(plan_id: str, request: Request) -> PlanOut:
    """Stop an execution or compilation with all its runs. An agent may stop only what it started."""
    ownership.check_plan(lab_of(request), plan_id, actor_of(request))
    return PlanOut(**plans.stop(lab_of(request), plan_id, actor_of(request)))


@router.get("/{plan_id}/report", dependencies=[READERS()])
def get_plan_report(plan_id: str, request: Request) -> ReportOut:
    """Return the report of an execution."""
    return ReportOut(**plans.results_view(lab_of(request), plan_id))


if TYPE_CHECKING:
    from labwright.planning.ir.model import PlanIR, StepIR


class WorkflowStepOut(BaseModel):
    id: str
    kind: str
    inputs: dict[str, str] = Field(description="input name: its source, as `step.output`")
    outputs: dict[str, str] = Field(description="output name: its type")
    responsibility: str
    command: str


class WorkflowOut(BaseModel):
    name: str
    steps: list[WorkflowStepOut]
    edges: list[tuple[str, str]]
    grid: dict[str, Any]


@router.get("/{plan_id}/workflow", dependencies=[READERS()])
def get_plan_workflow(plan_id: str, request: Request) -> WorkflowOut:
    """Return the steps of the compiled workflow. If there is no readable IR, the response is a 422."""
    from labwright.planning.ir.model import read_ir  # here, because the planner is large and often not needed

    lab = lab_of(request)
    plans.get_document(lab, plan_id)
    found = read_ir(plans.folder_of(lab, plan_id))
    workflow = found.workflow
    steps = [_step(found, step) for step in workflow.steps]
    return WorkflowOut(
        name=workflow.name, steps=steps, edges=workflow.edges, grid=workflow.grid.model_dump(mode="json")
    )


def _step(found: PlanIR, step: StepIR) -> WorkflowStepOut:
    task = found.tasks[step.id]
    return WorkflowStepOut(
        id=step.id,
        kind=step.kind,
        inputs={name: given.source for name, given in step.inputs.items()},
        outputs=dict(step.outputs),
        responsibility=task.responsibility,
        command=task.command,
    )
