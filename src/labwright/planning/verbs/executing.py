"""Execute an approved plan, if what was approved is what there is; and stop it, or its compilation."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.digest_facts import current_digest
from labwright.planning.plan_views import View, view
from labwright.planning.run_mode import check_approved, experiments_with_failed_runs, note_failed
from labwright.planning.scan import ProjectScan, scan_project
from labwright.planning.state import PlanState, read_state
from labwright.planning.stopping import stop_what_it_started
from labwright.planning.verbs.standing import get, way_on
from labwright.services import plans
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle

_ENDED = (PlanStatus.COMPLETED, PlanStatus.FAILED)


def execute(lab: Lab, plan_id: str, actor: Actor) -> View:
    """Run it. Asked twice, it runs once; asked again after its end, only what did not finish is run."""
    scan = scan_project(lab.paths.project)
    with lab.plan_lock:
        plan = stored.get(lab.db.reader(), plan_id)
        if plan.status is PlanStatus.EXECUTING:
            return get(lab, plan_id)
        plan.check_free()
        again = _to_make_again(lab, plan)
        _check_handoff(lab, plan, scan, again)
        if again:
            note_failed(plans.folder_of(lab, plan_id), again, "some of its runs failed")
        return view(lab, plans.change(lab, plan_id, lambda plan: plan.executing(str(actor), at=now()), actor))


def _to_make_again(lab: Lab, plan: Plan) -> list[str]:
    """Experiments of an execution that ended, of which some runs failed; also if it was checked again since then."""
    handle = plans.folder_of(lab, plan.id)
    handoff = read_state(handle).handoff
    return [] if handoff is None else experiments_with_failed_runs(lab, handle, handoff)


def _check_handoff(lab: Lab, plan: Plan, scan: ProjectScan, again: list[str]) -> None:
    """What changed beside the server takes no approval back: put back as it was, these are the approved bytes again."""
    handle = plans.folder_of(lab, plan.id)
    state = read_state(handle)
    may_run = plan.status in (PlanStatus.APPROVED, PlanStatus.FAILED) or (plan.status is PlanStatus.COMPLETED and again)
    if not may_run or not state.ready_for_run or state.handoff is None:
        done = plan.status is PlanStatus.COMPLETED and not again
        words = "completed, and none of its runs failed" if done else f"{plan.status} and not ready to run"
        raise Conflict(f"Plan {plan.id} is {words}.", hint=_what_first(plan, state, handle, scan))
    try:
        check_approved(handle, state.handoff, scan, begun=plan.status in _ENDED)
    except Conflict as error:
        error.hint = _undo_or_review(plan)
        raise


def _undo_or_review(plan: Plan) -> str:
    if plan.status is PlanStatus.COMPLETED:  # its results belong to what was approved
        return f"Undo that, or make a new plan from its text: labwright plan new --from-plan {plan.id}"
    return f"Undo that, or have it checked and review it again: labwright plan validate {plan.id}"


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
