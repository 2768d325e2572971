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

_REASON = 200  # characters of an alert in the words on why a run was stopped


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
    """A rerun that cannot be made stops nothing and leaves the alert open."""
    asked = alerts.get(lab.db.reader(), alert_id)
    asked.check_answer(choice)
    _check_may_raise(asked, choice, actor)
    if choice == "rerun" and asked.run_id:
        _stop_and_rerun(lab, asked, asked.run_id, actor)
    with lab.db.transaction() as tx:
        alert = alerts.get(tx.connection, alert_id)
        alert.check_answer(choice)
        answered = alert.answered(choice, str(actor), now())
        alerts.resolve(tx, answered, str(actor))
    if alert.sweep_id:
        with contextlib.suppress(Conflict):  # somebody else has decided meanwhile
            sweep_verbs.carry_out(lab, alert, choice, actor)
    elif choice == "stop" and alert.run_id:
        _stop(lab, alert, alert.run_id, actor)
    return answered


def _check_may_raise(alert: Alert, choice: str, actor: Actor) -> None:
    """A wild loop's worker carries out the answer, whoever gave it; so it is looked at here."""
    if (alert.wild_id or alert.sweep_id) and choice == sweep_verbs.RAISE and actor.scope is not Scope.PERSON:
        raise Forbidden("Only a person raises a budget.", hint="Ask for it, or answer stop.")


def _stop_and_rerun(lab: Lab, alert: Alert, run_id: str, actor: Actor) -> None:
    """Made before anything is stopped, queued after it; one is made at most, whoever answers how often."""
    once = IdempotencyKey.of(alert.id, "rerun", b"")
    again = run_verbs.rerun(lab, run_id, actor, {"auto_start": False}, once)
    _stop(lab, alert, run_id, actor)
    with contextlib.suppress(Conflict):  # whoever answered at the same time was faster
        run_verbs.start(lab, again.id, actor)


def _stop(lab: Lab, alert: Alert, run_id: str, actor: Actor) -> None:
    with contextlib.suppress(Conflict):  # it has ended by itself
        run_verbs.stop(lab, run_id, actor, f"stopped on the alert: {alert.message[:_REASON]}")


def page(
    lab: Lab, status: str | None, run_id: str | None, sweep_id: str | None, limit: int, before: int | None
) -> tuple[list[Alert], int | None]:
    return alerts.page(lab.db.reader(), status, run_id, sweep_id, limit, before)
