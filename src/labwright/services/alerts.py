"""The verbs of alerts: raise, get, respond."""

from __future__ import annotations

import contextlib
import json

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.alert import Alert, Severity
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Forbidden
from labwright.domain.ids import ALERT, new_id
from labwright.services.runs import verbs as run_verbs
from labwright.services.sweeps import verbs as sweep_verbs
from labwright.store import alerts, runs
from labwright.store.idempotency import IdempotencyKey, recall, remember

_REASON = 200  # characters of the alert in the stop reason of a run


def raise_for_run(
    lab: Lab,
    run_id: str,
    *,
    message: str,
    choices: tuple[str, ...],
    severity: Severity,
    actor: Actor,
    key: IdempotencyKey | None = None,
) -> Alert:
    alert = Alert(
        id=new_id(ALERT), run_id=run_id, message=message, severity=severity, choices=choices, created_at=now()
    )
    with lab.db.transaction() as tx:
        if answer := recall(tx, key):
            return Alert.from_dict(json.loads(answer))
        runs.get(tx.connection, run_id)
        alerts.insert(tx, alert, str(actor))
        remember(tx, key, alert.to_dict())
    return alert


def get(lab: Lab, alert_id: str) -> Alert:
    return alerts.get(lab.db.reader(), alert_id)


def respond(lab: Lab, alert_id: str, choice: str, actor: Actor) -> Alert:
    """Resolve an alert and carry out the choice. If a rerun cannot be created, the alert stays open."""
    pending = alerts.get(lab.db.reader(), alert_id)
    pending.check_answer(choice)
    # Checked here, because the worker of a wild loop does not know the actor.
    if (pending.wild_id or pending.sweep_id) and choice == sweep_verbs.RAISE and actor.scope is not Scope.PERSON:
        raise Forbidden("Only a person may raise a budget.", hint="Ask the user, or answer stop.")
    if choice == "rerun" and pending.run_id:  # repeated answers create at most one rerun
        once = IdempotencyKey.of(alert_id, "rerun", b"")
        rerun = run_verbs.rerun(lab, pending.run_id, actor, {"auto_start": False}, once)
        _stop(lab, pending, pending.run_id, actor)
        with contextlib.suppress(Conflict):  # a simultaneous answer was faster
            run_verbs.start(lab, rerun.id, actor)
    with lab.db.transaction() as tx:
        alert = alerts.get(tx.connection, alert_id)
        alert.check_answer(choice)
        answered = alert.answered(choice, str(actor), now())
        alerts.resolve(tx, answered, str(actor))
    if alert.sweep_id:
        with contextlib.suppress(Conflict):  # another answer was faster
            sweep_verbs.carry_out(lab, alert, choice, actor)
    elif choice == "stop" and alert.run_id:
        _stop(lab, alert, alert.run_id, actor)
    return answered


def _stop(lab: Lab, alert: Alert, run_id: str, actor: Actor) -> None:
    with contextlib.suppress(Conflict):  # the run has already ended
        run_verbs.stop(lab, run_id, actor, f"stopped on the alert: {alert.message[:_REASON]}")


def page(
    lab: Lab, status: str | None, run_id: str | None, sweep_id: str | None, limit: int, before: int | None
) -> tuple[list[Alert], int | None]:
    return alerts.page(lab.db.reader(), status, run_id, sweep_id, limit, before)
