"""What an agent's token may not end: what somebody else began. A conversation's tools ask a person; a token cannot."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Forbidden
from labwright.domain.ids import SESSION, WILD, is_id
from labwright.services.runs import verbs as run_verbs
from labwright.services.sweeps import verbs as sweep_verbs
from labwright.store import alerts, plans, sweeps, wild

_ENDS = (sweep_verbs.STOP, "rerun")  # answers to an alert that end what runs


def check_run(lab: Lab, run_id: str, actor: Actor) -> None:
    run = run_verbs.get(lab, run_id)
    _check(actor, run.id, run.created_by, run.chat_session_id)


def check_sweep(lab: Lab, sweep_id: str, actor: Actor) -> None:
    sweep = sweeps.get(lab.db.reader(), sweep_id)
    _check(actor, sweep.id, sweep.created_by, sweep.chat_session_id)


def check_plan(lab: Lab, plan_id: str, actor: Actor) -> None:
    """Whoever is at work on it counts, not who wrote it."""
    plan = plans.get(lab.db.reader(), plan_id)
    _check(actor, plan.id, plan.compiling_by or plan.executed_by or plan.created_by)


def check_archiving(lab: Lab, plan_id: str, actor: Actor) -> None:
    """An archived plan stays as it is for good, so here it is the writer who counts."""
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


def _check(actor: Actor, what: str, begun_by: str, session_id: str | None = None) -> None:
    if actor.scope is Scope.AGENT and actor.name != session_id and _hand(actor) != _hand(Actor.of(begun_by)):
        raise Forbidden(
            f"{what} was begun by {begun_by}; {actor} ends only what it began itself.",
            hint="Ask a person to do it. In a conversation, the tool for it asks.",
        )


def _hand(actor: Actor) -> Actor:
    """Assistants outside of conversations are one: their name tells the way they came, by MCP, a skill or a token."""
    inside = is_id(actor.name, SESSION) or is_id(actor.name, WILD)
    return Actor(actor.scope) if actor.scope is Scope.AGENT and not inside else actor
