"""Alerts in the database."""

from __future__ import annotations

import json
import sqlite3

from labwright.domain.alert import Alert
from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Event, EventType
from labwright.store.database import Transaction
from labwright.store.paging import page_before
from labwright.store.statements import REST


def insert(tx: Transaction, alert: Alert, actor: str) -> bool:
    """Store an alert. Return False if it exists or if the run already has an open alert of this rule."""
    if tx.execute(REST["get_alert"], id=alert.id).fetchone():
        return False
    if alert.rule and alert.run_id and open_of_rule(tx.connection, alert.run_id, alert.rule):
        return False
    tx.execute(REST["insert_alert"], id=alert.id, record=json.dumps(alert.to_dict()))
    _emit(tx, EventType.ALERT_RAISED, alert, actor)
    return True


def change(tx: Transaction, alert: Alert, actor: str) -> None:
    tx.execute(REST["update_alert"], id=alert.id, record=json.dumps(alert.to_dict()))
    _emit(tx, EventType.ALERT_UPDATED, alert, actor)


def resolve(tx: Transaction, alert: Alert, actor: str) -> None:
    tx.execute(REST["update_alert"], id=alert.id, record=json.dumps(alert.to_dict()))
    _emit(tx, EventType.ALERT_RESOLVED, alert, actor)


def _emit(tx: Transaction, kind: EventType, alert: Alert, actor: str) -> None:
    data = {
        "alert_id": alert.id,
        "severity": alert.severity,
        "message": alert.message,
        "choices": list(alert.choices),
        "answer": alert.answer,
        **({"wild_id": alert.wild_id} if alert.wild_id else {}),
    }
    tx.emit(Event(type=kind, actor=actor, time=now(), run_id=alert.run_id, sweep_id=alert.sweep_id, data=data))


def get(connection: sqlite3.Connection, alert_id: str) -> Alert:
    row = connection.execute(REST["get_alert"], {"id": alert_id}).fetchone()
    if row is None:
        raise NotFound(f"There is no alert {alert_id}.", hint="List them with GET /alerts.")
    return Alert.from_dict(json.loads(row[0]))


def open_of_rule(connection: sqlite3.Connection, run_id: str, rule: str) -> Alert | None:
    row = connection.execute(REST["open_alert"], {"run_id": run_id, "rule": rule}).fetchone()
    return Alert.from_dict(json.loads(row[0])) if row else None


def open_of_sweep(connection: sqlite3.Connection, sweep_id: str) -> list[Alert]:
    rows = connection.execute(REST["open_alerts_of_sweep"], {"sweep_id": sweep_id})
    return [Alert.from_dict(json.loads(row[0])) for row in rows]


def pending_of_run(connection: sqlite3.Connection, run_id: str) -> list[Alert]:
    rows = connection.execute(REST["pending_alerts_of_run"], {"run_id": run_id})
    return [Alert.from_dict(json.loads(row[0])) for row in rows]


def pending_of_rule(connection: sqlite3.Connection, rule: str) -> list[Alert]:
    rows = connection.execute(REST["pending_alerts_of_rule"], {"rule": rule})
    return [Alert.from_dict(json.loads(row[0])) for row in rows]


def delete_of_run(tx: Transaction, run_id: str) -> None:
    tx.execute(REST["delete_alerts_of_run"], run_id=run_id)


def count_pending(connection: sqlite3.Connection) -> int:
    return int(connection.execute(REST["count_pending_alerts"]).fetchone()[0])


def page(
    connection: sqlite3.Connection,
    status: str | None,
    run_id: str | None,
    sweep_id: str | None,
    limit: int,
    before: int | None,
) -> tuple[list[Alert], int | None]:
    values = {"status": status, "run_id": run_id, "sweep_id": sweep_id}
    return page_before(connection, REST["list_alerts"], values, read=Alert.from_dict, limit=limit, before=before)
