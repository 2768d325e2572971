"""Checks that several verbs make before they change a plan, and the hints they give."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Forbidden, Invalid
from labwright.domain.plan import Plan
from labwright.planning.plans.documents import change, folder_of
from labwright.planning.plans.views import View, view
from labwright.planning.record.request import CompileRequest, read_request
from labwright.planning.record.state import PlanState
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle


def editable_plan(lab: Lab, plan_id: str) -> tuple[Plan, PlanWorkspaceHandle]:
    """Return a plan that may be changed and that nothing works on. The caller holds `plan_lock`."""
    plan = stored.get(lab.db.reader(), plan_id)
    plan.check_editable()
    plan.check_free()
    return plan, folder_of(lab, plan_id)


def start_compiling(lab: Lab, plan_id: str, actor: Actor) -> View:
    """Record that the plan is to be compiled; the plan worker sees the record and does it."""
    return view(lab, change(lab, plan_id, lambda plan: plan.compiling(str(actor), at=now()), actor))


def compiled_request(plan: Plan, handle: PlanWorkspaceHandle) -> CompileRequest:
    request = read_request(handle)
    if request is None:
        hint = f"POST /plans/{plan.id}/compile, or: labwright plan new --from-plan {plan.id}"
        raise Conflict(f"Plan {plan.id} is not compiled yet.", hint=hint)
    return request


def check_is_person(actor: Actor) -> None:
    if actor.scope is not Scope.PERSON:
        raise Forbidden(f"Only a person may approve plans; this is {actor}.", hint="Ask a person to review the plan.")


def check_node(node: str | None, field: str) -> None:
    from labwright.planning.nodes import NODES

    if node is not None and node not in NODES:
        raise Invalid(f"There is no node {node}.", hint=f"Choose: {', '.join(NODES)}.", field=(field,))


def next_step(plan: Plan, state: PlanState) -> str:
    verb = f'answer {plan.id} "…"' if state.questions else f"new --from-plan {plan.id}"
    return f"Continue with: labwright plan {verb}"
