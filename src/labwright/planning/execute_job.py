"""One execution of an approved plan, to its end. Until then the plan is `executing`: a restart goes on with it."""

from __future__ import annotations

import threading

from labwright.compute.lab import Lab
from labwright.domain.actor import SYSTEM, Actor
from labwright.domain.clock import now
from labwright.domain.errors import LabwrightError
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.news import step_news
from labwright.planning.run_mode import run_plan
from labwright.planning.scan import scan_project
from labwright.planning.state import read_state
from labwright.services import plans


def execute_plan(lab: Lab, plan: Plan, stopping: threading.Event) -> None:
    handle, actor = plans.folder_of(lab, plan.id), Actor.of(plan.executed_by)
    handoff = read_state(handle).handoff
    if handoff is None:
        finish(lab, plan.id, "its handoff is gone")
        return
    tell = step_news(lab, plan.id, actor)
    try:
        outcome = run_plan(lab, handle, handoff, scan_project(lab.paths.project), actor, tell, stopping)
    except LabwrightError as error:
        finish(lab, plan.id, f"{error.message} {error.hint}".strip())
        return
    if outcome.completed or not stopping.is_set():
        finish(lab, plan.id, "" if outcome.completed else outcome.reason)


def finish(lab: Lab, plan_id: str, failure: str) -> None:
    status = PlanStatus.FAILED if failure else PlanStatus.COMPLETED

    def ended(plan: Plan) -> Plan:
        if plan.status is not PlanStatus.EXECUTING:
            return plan  # stopped meanwhile
        return plan.move(status, at=now(), reason=failure)

    plans.change(lab, plan_id, ended, SYSTEM)
