"""Review a compiled plan: approve exactly these bytes, or reject them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.plans.documents import change, folder_of
from labwright.planning.plans.edits import UNAPPROVED, as_draft
from labwright.planning.plans.preconditions import (
    check_is_person,
    check_node,
    compiled_request,
    editable_plan,
    next_step,
    start_compiling,
)
from labwright.planning.plans.views import View, get, view
from labwright.planning.record.request import write_request
from labwright.planning.record.state import change_state, read_state
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle

if TYPE_CHECKING:
    from labwright.planning.scan import ProjectScan

_CHECK_SECONDS = 30.0  # how long an approval waits for the final check


def approve(lab: Lab, plan_id: str, digest: str, actor: Actor, reason: str = "") -> View:
    """Approve the bytes of this digest. Return after the final check has decided whether they may run."""
    from labwright.planning.nodes import pipeline
    from labwright.planning.scan import scan_project

    check_is_person(actor)
    scan = scan_project(lab.paths.project)
    with lab.plan_lock:
        if not _is_approved(lab, plan_id, digest):
            plan, handle = editable_plan(lab, plan_id)
            _check_reviewable(plan, handle, scan)
            pipeline.approve(handle, scan, digest, str(actor), reason=reason)
            start_compiling(lab, plan_id, actor)
    with lab.plan_news:
        lab.plan_news.wait_for(lambda: not stored.get(lab.db.reader(), plan_id).compiling_by, _CHECK_SECONDS)
    return get(lab, plan_id)


def _is_approved(lab: Lab, plan_id: str, digest: str) -> bool:
    """Return whether this digest is approved already: its final check passed or is in progress."""
    plan = stored.get(lab.db.reader(), plan_id)
    approval = read_state(folder_of(lab, plan_id)).approval
    same = approval is not None and approval.digest == digest
    return same and (bool(plan.compiling_by) or plan.status is PlanStatus.APPROVED)


def _check_reviewable(plan: Plan, handle: PlanWorkspaceHandle, scan: ProjectScan) -> None:
    from labwright.planning.project.digest import current_digest

    compiled_request(plan, handle)
    state = read_state(handle)
    if not state.validated_digest:
        questions = "; ".join(question.text for question in state.questions)
        why = questions or state.error or "it did not get further."
        message = f"Plan {plan.id} stopped at {state.node or 'its first node'}: {why}"
        raise Conflict(message, hint=next_step(plan, state))
    if state.validated_digest != current_digest(handle, scan).value:
        raise Conflict(
            f"Plan {plan.id} was changed after its validation.",
            hint=f"Validate it first: labwright plan validate {plan.id}",
        )


def reject(lab: Lab, plan_id: str, reason: str, node: str | None, actor: Actor) -> View:
    """Reject the plan. With a node, repeat the plan from that node with the reason as feedback."""
    from labwright.planning.nodes import pipeline

    check_is_person(actor)
    check_node(node, "node")
    if not reason.strip():
        raise Invalid("A rejection needs a reason.", hint="Say what should change.", field=("reason",))
    with lab.plan_lock:
        plan, handle = editable_plan(lab, plan_id)
        request = compiled_request(plan, handle)
        if node is None:
            change_state(handle, status="rejected", node="HumanReview", error=reason, **UNAPPROVED)
            return view(lab, change(lab, plan_id, lambda plan: replace(as_draft(plan, reason), asks=""), actor))
        pipeline.reject(handle, reason, node)
        write_request(handle, request.model_copy(update={"auto_approve": ""}))
        return start_compiling(lab, plan_id, actor)
