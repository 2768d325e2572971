"""An agent's token may end only what the agent started itself. Tools of a conversation ask the user instead."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Forbidden
from labwright.domain.ids import SESSION, WILD, is_id
from labwright.services.runs import verbs as run_verbs
from labwright.services.sweeps import verbs as sweep_verbs
from labwright.store import alerts, plans, sweeps, wild

_ENDS = (sweep_verbs.STOP, "rerun")  # answers to an alert that stop runs


def check_run(lab: Lab, run_id: str, actor: Actor) -> None:
    run = run_verbs.get(lab, run_id)
    _check(actor, run.id, run.created_by, run.chat_session_id)


def check_sweep(lab: Lab, sweep_id: str, actor: Actor) -> None:
    sweep = sweeps.get(lab.db.reader(), sweep_id)
    _check(actor, sweep.id, sweep.created_by, sweep.chat_session_id)


def check_plan(lab: Lab, plan_id: str, actor: Actor) -> None:
    """Check against the actor that compiles or executes the plan; otherwise its author."""
    plan = plans.get(lab.db.reader(), plan_id)
    _check(actor, plan.id, plan.compiling_by or plan.executed_by or plan.created_by)


def check_archiving(lab: Lab, plan_id: str, actor: Actor) -> None:
    """Check against the author: an archived plan can never change again."""
    plan = plans.get(lab.db.reader(), plan_id)
    _check(actor, plan.id, plan.created_by)


def check_wild(lab: Lab, wild_id: str, actor: Actor) -> None:
    loop = wild.get(lab.db.reader(), wild_id)
    _check(actor, loop.id, loop.created_by)


def check_answer(lab: Lab, alert_id: str, choice: str, actor: Actor) -> None:
    if choice not in _ENDS:
        return
    alert = alerts.get(lab.db.reader(), alert_id)
    if alert.wild_id:
        check_wild(lab, alert.wild_id, actor)
    elif alert.sweep_id:
        check_sweep(lab, alert.sweep_id, actor)
    elif alert.run_id:
        check_run(lab, alert.run_id, actor)


def _check(actor: Actor, what: str, started_by: str, session_id: str | None = None) -> None:
    if actor.scope is Scope.AGENT and actor.name != session_id and _identity(actor) != _identity(Actor.of(started_by)):
        raise Forbidden(
            f"{started_by} started {what}. {actor} may end only what it started itself.",
            hint="Ask the user to do it. In a conversation, the tool asks for approval.",
        )


def _identity(actor: Actor) -> Actor:
    """Return the actor for comparison. Assistants outside of conversations count as one, whatever their name."""
    inside = is_id(actor.name, SESSION) or is_id(actor.name, WILD)
    return Actor(actor.scope) if actor.scope is Scope.AGENT and not inside else actor
