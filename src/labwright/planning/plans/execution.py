"""Execute an approved plan if its files are still the approved ones; stop an execution or a compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.plans.documents import change, folder_of
from labwright.planning.plans.preconditions import next_step
from labwright.planning.plans.views import View, get, view
from labwright.planning.record.state import PlanState, read_state
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle

if TYPE_CHECKING:
    from labwright.planning.scan import ProjectScan

_ENDED = (PlanStatus.COMPLETED, PlanStatus.FAILED)


def execute(lab: Lab, plan_id: str, actor: Actor) -> View:
    """Run the plan. A second request during the execution changes nothing; after it, only unfinished parts run."""
    from labwright.planning.run_mode import experiments_with_failed_runs, note_failed
    from labwright.planning.scan import scan_project

    scan = scan_project(lab.paths.project)
    with lab.plan_lock:
        plan = stored.get(lab.db.reader(), plan_id)
        if plan.status is PlanStatus.EXECUTING:
            return get(lab, plan_id)
        plan.check_free()
        handle = folder_of(lab, plan_id)
        handoff = read_state(handle).handoff
        to_repeat = [] if handoff is None else experiments_with_failed_runs(lab, handle, handoff)
        _check_handoff(plan, handle, scan, bool(to_repeat))
        if to_repeat:
            note_failed(handle, to_repeat, "some of its runs failed")
        return view(lab, change(lab, plan_id, lambda plan: plan.executing(str(actor), at=now()), actor))


def _check_handoff(plan: Plan, handle: PlanWorkspaceHandle, scan: ProjectScan, has_failed_runs: bool) -> None:
    """Refuse unless the approved bytes are there. The approval stays: after an undo, the plan may run."""
    from labwright.planning.run_mode import check_approved

    state = read_state(handle)
    completed = plan.status is PlanStatus.COMPLETED
    may_run = plan.status in (PlanStatus.APPROVED, PlanStatus.FAILED) or (completed and has_failed_runs)
    if not may_run or not state.ready_for_run or state.handoff is None:
        done = completed and not has_failed_runs
        status = "completed, and none of its runs failed" if done else f"{plan.status} and not ready to run"
        raise Conflict(f"Plan {plan.id} is {status}.", hint=_required_step(plan, state, handle, scan))
    try:
        check_approved(handle, state.handoff, scan, begun=plan.status in _ENDED)
    except Conflict as error:
        if completed:  # its results belong to the approved bytes
            error.hint = f"Undo the change, or make a new plan from its text: labwright plan new --from-plan {plan.id}"
        else:
            error.hint = f"Undo the change, or validate and review the plan again: labwright plan validate {plan.id}"
        raise


def _required_step(plan: Plan, state: PlanState, handle: PlanWorkspaceHandle, scan: ProjectScan) -> str:
    """Return a hint: what has to happen before the plan can run."""
    from labwright.planning.project.digest import current_digest

    if plan.status in (PlanStatus.COMPLETED, PlanStatus.ARCHIVED):
        return f"Make a new plan from its text: labwright plan new --from-plan {plan.id}"
    if not state.validated_digest:
        return next_step(plan, state)
    if state.validated_digest != current_digest(handle, scan).value:
        return f"It was changed after its validation. Validate it again: labwright plan validate {plan.id}"
    if state.status == "rejected":
        return f"It was rejected: {state.error} Change it, or review it again: labwright plan review {plan.id}"
    if not state.validated:
        return f"Fix what the validation found, then: labwright plan validate {plan.id}"
    return f"Review it: labwright plan review {plan.id}"


def stop(lab: Lab, plan_id: str, actor: Actor) -> View:
    """Stop an execution or a compilation with everything it started. Its results stay."""
    from labwright.planning.run_mode.stopping import stop_what_it_started

    def stopped(plan: Plan) -> Plan:
        if plan.compiling_by:
            return plan.not_compiled(str(actor), at=now())
        if plan.status is not PlanStatus.EXECUTING:
            raise Conflict(f"Plan {plan_id} is {plan.status}; nothing is running.", hint="There is nothing to stop.")
        return plan.move(PlanStatus.FAILED, at=now(), reason=f"stopped by {actor}")

    document = change(lab, plan_id, stopped, actor)
    stop_what_it_started(lab, plan_id, actor)
    return view(lab, document)
