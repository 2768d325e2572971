"""The verbs of alerts: raise, list, respond."""

from __future__ import annotations

import contextlib
import json

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.alert import Alert, Severity
from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.domain.ids import ALERT, new_id
from labwright.services import runs as run_verbs
from labwright.services import sweeps as sweep_verbs
from labwright.store import alerts, runs
from labwright.store.idempotency import IdempotencyKey, recall, remember


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


def respond(lab: Lab, alert_id: str, choice: str, actor: Actor) -> Alert:
    """A rerun that cannot be made leaves the alert open; one is made at most, whoever answers how often."""
    asked = alerts.get(lab.db.reader(), alert_id)
    asked.check_answer(choice)
    if choice == "rerun" and asked.run_id:
        once = IdempotencyKey.of(alert_id, "rerun", b"")
        run_verbs.rerun(lab, asked.run_id, actor, {}, once)
    with lab.db.transaction() as tx:
        alert = alerts.get(tx.connection, alert_id)
        alert.check_answer(choice)
        answered = alert.answered(choice, str(actor), now())
        alerts.resolve(tx, answered, str(actor))
    with contextlib.suppress(Conflict):  # it has ended by itself
        if alert.sweep_id:
            sweep_verbs.carry_out(lab, alert, choice, actor)
        elif choice == "stop" and alert.run_id:
            run_verbs.stop(lab, alert.run_id, actor)
    return answered


def page(
    lab: Lab, status: str | None, run_id: str | None, sweep_id: str | None, limit: int, before: int | None
) -> tuple[list[Alert], int | None]:
    return alerts.page(lab.db.reader(), status, run_id, sweep_id, limit, before)
