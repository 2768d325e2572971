"""The verbs of alerts: raise, list, respond."""

from __future__ import annotations

import json

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.alert import Alert, Severity
from labwright.domain.clock import now
from labwright.domain.ids import ALERT, new_id
from labwright.services import runs as run_verbs
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
    """The answer is recorded first; `stop` and `rerun` are then carried out through the normal verbs."""
    with lab.db.transaction() as tx:
        alert = alerts.get(tx.connection, alert_id)
        alert.check_answer(choice)
        answered = alert.answered(choice, str(actor), now())
        alerts.resolve(tx, answered, str(actor))
    if choice == "stop" and not runs.get(lab.db.reader(), alert.run_id).is_terminal:
        run_verbs.stop(lab, alert.run_id, actor)
    elif choice == "rerun":
        run_verbs.rerun(lab, alert.run_id, actor, {})
    return answered


def page(
    lab: Lab, status: str | None, run_id: str | None, limit: int, before: int | None
) -> tuple[list[Alert], int | None]:
    return alerts.page(lab.db.reader(), status, run_id, limit, before)
