"""Execute an approved plan, if what was approved is what there is; and stop it."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.plan_views import View, view
from labwright.planning.run_mode import check_approved
from labwright.planning.scan import ProjectScan, scan_project
from labwright.planning.state import PlanState, read_state
from labwright.planning.stopping import stop_what_it_started
from labwright.planning.verbs.editing import withdraw_approval
from labwright.planning.verbs.standing import get, way_on
from labwright.services import plans
from labwright.store import plans as stored


def execute(lab: Lab, plan_id: str, actor: Actor) -> View:
    """Run it. Asked twice, it runs once; after a failure, what had finished is not repeated."""
    scan = scan_project(lab.paths.project)
    with lab.plan_lock:
        plan = stored.get(lab.db.reader(), plan_id)
        if plan.status is PlanStatus.EXECUTING:
            return get(lab, plan_id)
        plan.check_free()
        _check_handoff(lab, plan, scan, actor)
        return view(lab, plans.change(lab, plan_id, lambda plan: plan.executing(str(actor), at=now()), actor))


def _check_handoff(lab: Lab, plan: Plan, scan: ProjectScan, actor: Actor) -> None:
    handle = plans.folder_of(lab, plan.id)
    state = read_state(handle)
    if plan.status not in (PlanStatus.APPROVED, PlanStatus.FAILED) or not state.ready_for_run or state.handoff is None:
        raise Conflict(f"Plan {plan.id} is {plan.status} and not ready to run.", hint=_what_first(plan, state))
    try:
        check_approved(handle, state.handoff, scan, begun=plan.status is PlanStatus.FAILED)
    except Conflict as error:
        withdraw_approval(lab, plan.id, error.message, actor)
        error.hint = f"Have it checked, and review it again: labwright plan validate {plan.id}"
        raise


def _what_first(plan: Plan, state: PlanState) -> str:
    if plan.status in (PlanStatus.COMPLETED, PlanStatus.ARCHIVED):
        return f"Make a new plan from its text: labwright plan new --from-plan {plan.id}"
    if not state.validated_digest:
        return way_on(plan, state)
    if not state.validated:
        return f"Mend what validation found, then: labwright plan validate {plan.id}"
    return f"Review it: labwright plan review {plan.id}"


def stop(lab: Lab, plan_id: str, actor: Actor) -> View:
    """End an execution and all that it started. What it found out stays."""

    def stopped(plan: Plan) -> Plan:
        if plan.status is not PlanStatus.EXECUTING:
            raise Conflict(f"Plan {plan_id} is {plan.status}, not executing.", hint="There is nothing to stop.")
        return plan.move(PlanStatus.FAILED, at=now(), reason=f"stopped by {actor}")

    made = plans.change(lab, plan_id, stopped, actor)
    stop_what_it_started(lab, plan_id, actor)
    return view(lab, made)
