"""/plans/{plan_id}/workflow: the steps of a compiled plan, and who feeds whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from labwright.planning import plans
from labwright.server.auth import READERS
from labwright.server.requests import ReferenceRoute, lab_of

if TYPE_CHECKING:
    from labwright.planning.ir.model import PlanIR, StepIR

router = APIRouter(prefix="/plans/{plan_id}", route_class=ReferenceRoute, tags=["plans"])


class WorkflowStepOut(BaseModel):
    id: str
    kind: str
    inputs: dict[str, str] = Field(description="by name: the output that feeds it, as `step.output`")
    outputs: dict[str, str] = Field(description="by name: the type")
    responsibility: str
    command: str


class WorkflowOut(BaseModel):
    name: str
    steps: list[WorkflowStepOut]
    edges: list[tuple[str, str]]
    grid: dict[str, Any]


@router.get("/workflow", dependencies=[READERS()])
def get_plan_workflow(plan_id: str, request: Request) -> WorkflowOut:
    """The workflow as the IR has it; 422 where that is not there or cannot be read."""
    from labwright.planning.ir.model import read_ir  # here, as the planner is large and may never be needed

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
