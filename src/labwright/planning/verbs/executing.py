"""Execute an approved plan, if what was approved is what there is; and stop it."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.domain.plan import Plan, PlanStatus
from labwright.domain.run import ACTIVE, RunStatus
from labwright.domain.sweep import SweepStatus
from labwright.planning.digest_facts import current_digest
from labwright.planning.plan_views import View, view
from labwright.planning.scan import ProjectScan, scan_project
from labwright.planning.state import PlanState, read_state
from labwright.planning.verbs.editing import withdraw_approval
from labwright.planning.verbs.standing import get, way_on
from labwright.services import plans
from labwright.services import runs as run_verbs
from labwright.services import sweeps as sweep_verbs
from labwright.store import plans as stored
from labwright.store import runs, sweeps
from labwright.workspace import what_changed

_SHOWN_CHANGES = 5


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
    changed = what_changed(handle.listing(state.handoff.digest), current_digest(handle, scan))
    if changed:
        words = _few(changed)
        withdraw_approval(lab, plan.id, f"after the approval, {words}", actor)
        raise Conflict(
            f"Plan {plan.id} is not what was approved: {words}.",
            hint=f"Have it checked, and review it again: labwright plan validate {plan.id}",
        )


def _few(changed: list[str]) -> str:
    more = len(changed) - _SHOWN_CHANGES
    return "; ".join([*changed[:_SHOWN_CHANGES], *([f"and {more} more"] if more > 0 else [])])


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
    _stop_what_it_started(lab, plan_id, actor)
    return view(lab, made)


def _stop_what_it_started(lab: Lab, plan_id: str, actor: Actor) -> None:
    reader = lab.db.reader()
    for status in (SweepStatus.RUNNING, SweepStatus.PAUSED):
        for sweep in sweeps.with_status(reader, status):
            if sweep.plan_id == plan_id:
                sweep_verbs.stop(lab, sweep.id, actor)
    for run in runs.with_status(reader, RunStatus.READY, RunStatus.QUEUED, *ACTIVE):
        if run.plan_id == plan_id:
            run_verbs.stop(lab, run.id, actor)
