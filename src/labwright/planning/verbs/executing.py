"""Execute an approved plan, if what was approved is what there is; and stop it, or its compilation."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.digest_facts import current_digest
from labwright.planning.plan_views import View, view
from labwright.planning.run_mode import check_approved
from labwright.planning.scan import ProjectScan, scan_project
from labwright.planning.state import PlanState, read_state
from labwright.planning.stopping import stop_what_it_started
from labwright.planning.verbs.standing import get, way_on
from labwright.services import plans
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle


def execute(lab: Lab, plan_id: str, actor: Actor) -> View:
    """Run it. Asked twice, it runs once; after a failure, what had finished is not repeated."""
    scan = scan_project(lab.paths.project)
    with lab.plan_lock:
        plan = stored.get(lab.db.reader(), plan_id)
        if plan.status is PlanStatus.EXECUTING:
            return get(lab, plan_id)
        plan.check_free()
        _check_handoff(lab, plan, scan)
        return view(lab, plans.change(lab, plan_id, lambda plan: plan.executing(str(actor), at=now()), actor))


def _check_handoff(lab: Lab, plan: Plan, scan: ProjectScan) -> None:
    """What changed beside the server takes no approval back: put back as it was, these are the approved bytes again."""
    handle = plans.folder_of(lab, plan.id)
    state = read_state(handle)
    if plan.status not in (PlanStatus.APPROVED, PlanStatus.FAILED) or not state.ready_for_run or state.handoff is None:
        hint = _what_first(plan, state, handle, scan)
        raise Conflict(f"Plan {plan.id} is {plan.status} and not ready to run.", hint=hint)
    try:
        check_approved(handle, state.handoff, scan, begun=plan.status is PlanStatus.FAILED)
    except Conflict as error:
        error.hint = f"Undo that, or have it checked and review it again: labwright plan validate {plan.id}"
        raise


def _what_first(plan: Plan, state: PlanState, handle: PlanWorkspaceHandle, scan: ProjectScan) -> str:
    if plan.status in (PlanStatus.COMPLETED, PlanStatus.ARCHIVED):
        return f"Make a new plan from its text: labwright plan new --from-plan {plan.id}"
    if not state.validated_digest:
        return way_on(plan, state)
    if state.validated_digest != current_digest(handle, scan).value:
        return f"It was changed after it was checked. Have it checked again: labwright plan validate {plan.id}"
    if state.status == "rejected":
        return f"It was rejected: {state.error} Change it, or look at it again: labwright plan review {plan.id}"
    if not state.validated:
        return f"Mend what validation found, if anything, then: labwright plan validate {plan.id}"
    return f"Review it: labwright plan review {plan.id}"


def stop(lab: Lab, plan_id: str, actor: Actor) -> View:
    """End an execution, or a compilation, and all that it started. What it found out stays."""

    def stopped(plan: Plan) -> Plan:
        if plan.compiling_by:
            return plan.not_compiled(str(actor), at=now())
        if plan.status is not PlanStatus.EXECUTING:
            raise Conflict(
                f"Plan {plan_id} is {plan.status}, and nobody is at work on it.", hint="There is nothing to stop."
            )
        return plan.move(PlanStatus.FAILED, at=now(), reason=f"stopped by {actor}")

    made = plans.change(lab, plan_id, stopped, actor)
    stop_what_it_started(lab, plan_id, actor)
    return view(lab, made)
