"""One execution of an approved plan, to its end. Until then the plan is `executing`: a restart goes on with it."""

from __future__ import annotations

import threading
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import SYSTEM, Actor
from labwright.domain.clock import now
from labwright.domain.errors import LabwrightError
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.news import step_news
from labwright.planning.plans import change, folder_of
from labwright.planning.record.state import read_state
from labwright.planning.run_mode import run_plan
from labwright.planning.run_mode.stopping import stop_what_is_paused, stop_what_it_started
from labwright.planning.scan import scan_project
from labwright.store import plans as stored


def carry_out(lab: Lab, plan: Plan, stopping: threading.Event) -> None:
    handle, actor = folder_of(lab, plan.id), Actor.of(plan.executed_by)
    handoff = read_state(handle).handoff
    if handoff is None:
        finish(lab, plan, "its handoff is gone")
        return
    tell = step_news(lab, plan.id, actor, lambda: _stop_if_unwanted(lab, plan.id))

    def hear(fact: dict[str, Any]) -> None:
        tell(fact)
        if fact["fact"] == "paused":
            _say_why(lab, plan.id, f"{fact['step']} waits, as {fact['sweep_id']} is paused: {fact['reason']}")
        elif fact["fact"] == "resumed":
            _say_why(lab, plan.id, "")

    _say_why(lab, plan.id, "")  # a kill may have come before it was taken back
    try:
        outcome = run_plan(lab, handle, handoff, scan_project(lab.paths.project), actor, hear, stopping)
    except LabwrightError as error:
        finish(lab, plan, f"{error.message} {error.hint}".strip())
        return
    if not outcome.suspended:
        finish(lab, plan, "" if outcome.completed else outcome.reason)


def _say_why(lab: Lab, plan_id: str, words: str) -> None:
    change(lab, plan_id, lambda plan: plan.waiting(words, at=now()), SYSTEM)


def _stop_if_unwanted(lab: Lab, plan_id: str) -> None:
    """Somebody stopped the plan just when a step was about to begin."""
    if stored.get(lab.db.reader(), plan_id).status is not PlanStatus.EXECUTING:
        stop_what_it_started(lab, plan_id, SYSTEM)


def finish(lab: Lab, begun: Plan, failure: str) -> None:
    status = PlanStatus.FAILED if failure else PlanStatus.COMPLETED

    def is_over(plan: Plan) -> bool:
        """Stopped meanwhile, and perhaps begun anew."""
        return plan.status is not PlanStatus.EXECUTING or plan.executions != begun.executions

    def ended(plan: Plan) -> Plan:
        return plan if is_over(plan) else plan.move(status, at=now(), reason=failure)

    if failure and not is_over(stored.get(lab.db.reader(), begun.id)):
        stop_what_is_paused(lab, folder_of(lab, begun.id), failure, SYSTEM)

    change(lab, begun.id, ended, SYSTEM)
