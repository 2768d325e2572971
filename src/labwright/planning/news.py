"""What planning and executing tell while they go on: stored events, and the order to stop between two facts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.event import Event, EventType
from labwright.planning.interrupted import Stopping
from labwright.planning.nodes.progress import STATUSES, STEP_STATUSES

_REHEARSES = "ValidateWorkspace"
Tell = Callable[[dict[str, Any]], None]


def node_news(lab: Lab, plan_id: str, actor: Actor, stopping: threading.Event) -> Tell:
    """For the engine's facts about nodes. Called between two of them, so it is also where a stop takes effect."""

    def tell(fact: dict[str, Any]) -> None:
        if stopping.is_set():
            raise Stopping
        if fact["fact"] in STATUSES and "step" in fact:
            emit(lab, EventType.PLAN_NODE, actor, {"plan_id": plan_id, **_node_facts(fact)})

    return tell


def tell_of_wait(lab: Lab, plan_id: str, actor: Actor, words: str) -> None:
    """That the checks do not go on, since the rehearsal waits."""
    waiting = {**_node_facts({"step": _REHEARSES, "fact": "started"}), "status": "waiting", "message": words}
    emit(lab, EventType.PLAN_NODE, actor, {"plan_id": plan_id, **waiting})


def _node_facts(fact: dict[str, Any]) -> dict[str, Any]:
    return {
        "node": fact["step"],
        "status": STATUSES[fact["fact"]],
        "seconds": fact.get("seconds"),
        "message": fact.get("error", ""),
        "tokens": fact.get("tokens", 0),
        "cost": fact.get("cost", 0.0),
    }


def step_news(lab: Lab, plan_id: str, actor: Actor, on_launch: Callable[[], None]) -> Tell:
    """For what RunMode tells of its steps; `on_launch` is called when one has started a sweep or a run."""

    def tell(fact: dict[str, Any]) -> None:
        if fact["fact"] in STEP_STATUSES and "step" in fact:
            emit(lab, EventType.PLAN_STEP, actor, {"plan_id": plan_id, **_step_facts(fact)})
        if fact["fact"] == "launched":
            on_launch()

    return tell


def _step_facts(fact: dict[str, Any]) -> dict[str, Any]:
    return {
        "step": fact["step"],
        "status": STEP_STATUSES[fact["fact"]],
        "seconds": fact.get("seconds"),
        "message": fact.get("error") or fact.get("reason") or "",
        "sweep_id": fact.get("sweep_id"),
        "run_id": fact.get("run_id"),
    }


def emit(lab: Lab, kind: EventType, actor: Actor, data: dict[str, Any]) -> None:
    with lab.db.transaction() as tx:
        tx.emit(Event(type=kind, actor=str(actor), time=now(), data=data))
