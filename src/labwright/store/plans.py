"""Plans in the database: every change and its events, in the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.plan import Plan, PlanStatus, PlanVersion
from labwright.store.database import Transaction
from labwright.store.paging import page_before
from labwright.store.statements import PLANS

_FACTS = (
    "status_reason",
    "session_id",
    "compiling_by",
    "asks",
)  # facts that may change besides the text and the status


def insert(tx: Transaction, plan: Plan, first: PlanVersion, actor: str) -> None:
    tx.execute(PLANS["insert"], id=plan.id, record=_json(plan.to_dict()))
    _save_version(tx, plan.id, first)
    _emit(tx, EventType.PLAN_CREATED, plan, actor, {"title": plan.title, "status": plan.status})


def restore(tx: Transaction, plan: Plan, versions: Iterable[PlanVersion]) -> None:
    """Restore a plan from disk, without an event."""
    tx.execute(PLANS["upsert"], id=plan.id, record=_json(plan.to_dict()))
    for version in versions:
        _save_version(tx, plan.id, version)


def edit(tx: Transaction, before: Plan, after: Plan, saved: PlanVersion, changed: list[str], actor: str) -> None:
    """Store a new version, and an event if it withdraws an approval."""
    tx.execute(PLANS["update"], id=after.id, record=_json(after.to_dict()))
    _save_version(tx, after.id, saved)
    _emit(tx, EventType.PLAN_UPDATED, after, actor, {"changed": changed, "version": after.version})
    if after.status is not before.status:
        _emit_status(tx, before, after, actor)


def change(tx: Transaction, before: Plan, after: Plan, actor: str) -> None:
    """Store another status or another fact besides the text."""
    tx.execute(PLANS["update"], id=after.id, record=_json(after.to_dict()))
    if after.status is not before.status:
        _emit_status(tx, before, after, actor)
        return
    changed = [name for name in _FACTS if getattr(before, name) != getattr(after, name)]
    _emit(tx, EventType.PLAN_UPDATED, after, actor, {"changed": changed, "version": after.version})


def file_changed(tx: Transaction, plan: Plan, path: str, actor: str) -> None:
    """Record that a file of the workspace was edited. The record stays the same."""
    _emit(tx, EventType.PLAN_UPDATED, plan, actor, {"changed": [path], "version": plan.version})


def delete(tx: Transaction, plan: Plan, actor: str) -> None:
    forget(tx, plan.id)
    _emit(tx, EventType.PLAN_DELETED, plan, actor, {"title": plan.title})


def forget(tx: Transaction, plan_id: str) -> None:
    tx.execute(PLANS["delete"], id=plan_id)
    tx.execute(PLANS["delete_versions"], plan_id=plan_id)


def get(connection: sqlite3.Connection, plan_id: str) -> Plan:
    row = connection.execute(PLANS["get"], {"id": plan_id}).fetchone()
    if row is None:
        raise NotFound(f"There is no plan {plan_id}.", hint="List them with GET /plans or `labwright plan list`.")
    return Plan.from_dict(json.loads(row[0]))


def every(connection: sqlite3.Connection) -> list[Plan]:
    return [Plan.from_dict(json.loads(row[0])) for row in connection.execute(PLANS["all"])]


def compiled_for(connection: sqlite3.Connection, by: str) -> list[Plan]:
    """Return the plans that are being compiled for this actor."""
    return [Plan.from_dict(json.loads(row[0])) for row in connection.execute(PLANS["compiled_for"], {"by": by})]


def page(
    connection: sqlite3.Connection,
    statuses: Iterable[PlanStatus],
    session_id: str | None,
    limit: int,
    before: int | None,
) -> tuple[list[Plan], int | None]:
    values = {"statuses": json.dumps(list(statuses)), "session_id": session_id}
    return page_before(connection, PLANS["page"], values, read=Plan.from_dict, limit=limit, before=before)


def version(connection: sqlite3.Connection, plan_id: str, number: int) -> PlanVersion:
    row = connection.execute(PLANS["get_version"], {"plan_id": plan_id, "version": number}).fetchone()
    if row is None:
        raise NotFound(f"Plan {plan_id} has no version {number}.", hint="List them with GET /plans/{plan_id}/versions.")
    return PlanVersion.from_dict(json.loads(row[0]))


def versions(
    connection: sqlite3.Connection, plan_id: str, limit: int, before: int | None
) -> tuple[list[PlanVersion], int | None]:
    """Return a page of versions, newest first."""
    values = {"plan_id": plan_id}
    return page_before(connection, PLANS["versions"], values, read=PlanVersion.from_dict, limit=limit, before=before)


def _save_version(tx: Transaction, plan_id: str, saved: PlanVersion) -> None:
    tx.execute(PLANS["save_version"], plan_id=plan_id, version=saved.version, record=_json(saved.to_dict()))


def _emit_status(tx: Transaction, before: Plan, after: Plan, actor: str) -> None:
    facts = {"from": before.status, "to": after.status, "reason": after.status_reason}
    _emit(tx, EventType.PLAN_STATUS, after, actor, facts)


def _emit(tx: Transaction, kind: EventType, plan: Plan, actor: str, data: dict[str, Any]) -> None:
    tx.emit(Event(type=kind, actor=actor, time=now(), data={"plan_id": plan.id, **data}))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
