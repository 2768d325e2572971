"""Where a plan stands: what every verb looks at before it does anything, and what it says where it may not."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Forbidden, Invalid
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.nodes import NODES
from labwright.planning.plan_views import View, view
from labwright.planning.request import CompileRequest, read_request
from labwright.planning.state import PlanState
from labwright.services import plans
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle


def get(lab: Lab, plan_id: str) -> View:
    return view(lab, plans.get(lab, plan_id))


def at_rest(lab: Lab, plan_id: str) -> tuple[Plan, PlanWorkspaceHandle]:
    """A plan that may be changed, with nobody at work on it. The caller holds `plan_lock`."""
    plan = stored.get(lab.db.reader(), plan_id)
    plan.check_editable()
    plan.check_free()
    return plan, plans.folder_of(lab, plan_id)


def begin(lab: Lab, plan_id: str, actor: Actor) -> View:
    """The record that somebody's compilation is under way; the keeper sees it and does it."""
    return view(lab, plans.change(lab, plan_id, lambda plan: plan.compiling(str(actor), at=now()), actor))


def request_of(plan: Plan, handle: PlanWorkspaceHandle) -> CompileRequest:
    request = read_request(handle)
    if request is None:
        hint = f"POST /plans/{plan.id}/compile, or: labwright plan new --from-plan {plan.id}"
        raise Conflict(f"Plan {plan.id} is not compiled yet.", hint=hint)
    return request


def unapproved(plan: Plan, reason: str) -> Plan:
    return plan if plan.status is PlanStatus.DRAFT else plan.move(PlanStatus.DRAFT, at=now(), reason=reason)


def only_a_person(actor: Actor) -> None:
    if actor.scope is not Scope.PERSON:
        raise Forbidden(f"Only a person approves plans; this is {actor}.", hint="Ask a person to review the plan.")


def check_node(node: str | None, field: str) -> None:
    if node is not None and node not in NODES:
        raise Invalid(f"There is no node {node}.", hint=f"Choose: {', '.join(NODES)}.", field=(field,))


def why_stopped(state: PlanState) -> str:
    return "; ".join(question.text for question in state.questions) or state.error or "it has not come further."


def way_on(plan: Plan, state: PlanState) -> str:
    verb = f'answer {plan.id} "…"' if state.questions else f"new --from-plan {plan.id}"
    return f"Go on with: labwright plan {verb}"
