"""A person's word on a compiled plan: these bytes may run, or something is to be done again."""

from __future__ import annotations

from dataclasses import replace

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning import pipeline
from labwright.planning.digest_facts import current_digest
from labwright.planning.plan_views import View, view
from labwright.planning.request import write_request
from labwright.planning.scan import ProjectScan, scan_project
from labwright.planning.state import change_state, read_state
from labwright.planning.verbs.editing import UNAPPROVED
from labwright.planning.verbs.standing import (
    at_rest,
    begin,
    check_node,
    get,
    only_a_person,
    request_of,
    unapproved,
    way_on,
    why_stopped,
)
from labwright.services import plans
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle

_CHECK_SECONDS = 30.0  # how long an approval waits for the final check


def approve(lab: Lab, plan_id: str, digest: str, actor: Actor, reason: str = "") -> View:
    """Of these bytes and no others. Answers when the final check has said whether they may run."""
    only_a_person(actor)
    scan = scan_project(lab.paths.project)
    with lab.plan_lock:
        if not _is_approved(lab, plan_id, digest):
            plan, handle = at_rest(lab, plan_id)
            _check_reviewable(plan, handle, scan)
            pipeline.approve(handle, scan, digest, str(actor), reason=reason)
            begin(lab, plan_id, actor)
    with lab.plan_news:
        lab.plan_news.wait_for(lambda: not stored.get(lab.db.reader(), plan_id).compiling_by, _CHECK_SECONDS)
    return get(lab, plan_id)


def _is_approved(lab: Lab, plan_id: str, digest: str) -> bool:
    """Said twice, it is done once: the final check is under way, or was passed."""
    plan = stored.get(lab.db.reader(), plan_id)
    approval = read_state(plans.folder_of(lab, plan_id)).approval
    said = approval is not None and approval.digest == digest
    return said and (bool(plan.compiling_by) or plan.status is PlanStatus.APPROVED)


def _check_reviewable(plan: Plan, handle: PlanWorkspaceHandle, scan: ProjectScan) -> None:
    request_of(plan, handle)
    state = read_state(handle)
    if not state.validated_digest:
        words = f"Plan {plan.id} stopped at {state.node or 'its first node'}: {why_stopped(state)}"
        raise Conflict(words, hint=way_on(plan, state))
    if state.validated_digest != current_digest(handle, scan).value:
        raise Conflict(
            f"Plan {plan.id} was changed after it was validated.",
            hint=f"Have it checked first: labwright plan validate {plan.id}",
        )


def reject(lab: Lab, plan_id: str, reason: str, node: str | None, actor: Actor) -> View:
    """With a node, that node is asked again, with the reason as feedback; else it is only not approved."""
    only_a_person(actor)
    check_node(node, "node")
    if not reason.strip():
        raise Invalid("A rejection needs a reason.", hint="Say what is to be different.", field=("reason",))
    with lab.plan_lock:
        plan, handle = at_rest(lab, plan_id)
        request = request_of(plan, handle)
        if node is None:
            change_state(handle, status="rejected", node="HumanReview", error=reason, **UNAPPROVED)
            return view(lab, plans.change(lab, plan_id, lambda plan: replace(unapproved(plan, reason), asks=""), actor))
        pipeline.reject(handle, reason, node)
        write_request(handle, request.model_copy(update={"auto_approve": ""}))
        return begin(lab, plan_id, actor)
