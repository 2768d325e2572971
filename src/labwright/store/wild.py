"""Wild loops in the database."""

from __future__ import annotations

import json
import sqlite3

from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.wild import Wild
from labwright.store.database import Transaction
from labwright.store.paging import page_before
from labwright.store.statements import load_statements

_SQL = load_statements("wild")


def insert(tx: Transaction, wild: Wild, actor: str) -> None:
    tx.execute(_SQL["insert"], id=wild.id, record=_json(wild))
    _emit_change(tx, wild, actor)


def change(tx: Transaction, before: Wild, after: Wild, actor: str) -> Wild:
    """Store a changed loop, with an event for each new or changed iteration, and one if anything else changed."""
    tx.execute(_SQL["update"], id=after.id, record=_json(after))
    known = {iteration.number: iteration.status for iteration in before.iterations}
    moved = [iteration for iteration in after.iterations if known.get(iteration.number) is not iteration.status]
    for iteration in moved:
        facts = {"wild_id": after.id, "number": iteration.number, "status": iteration.status}
        tx.emit(Event(type=EventType.WILD_ITERATION, actor=actor, time=now(), sweep_id=after.sweep_id, data=facts))
    if not moved or before.status is not after.status:
        _emit_change(tx, after, actor)
    return after


def restore(tx: Transaction, wild: Wild) -> None:
    tx.execute(_SQL["upsert"], id=wild.id, record=_json(wild))


def get(connection: sqlite3.Connection, wild_id: str) -> Wild:
    row = connection.execute(_SQL["get"], {"id": wild_id}).fetchone()
    if row is None:
        raise NotFound(f"There is no wild loop {wild_id}.", hint="List them with GET /wild or: labwright wild list")
    return _wild(row[0])


def page(connection: sqlite3.Connection, limit: int, before: int | None) -> tuple[list[Wild], int | None]:
    """Return a page of loops, newest first."""
    return page_before(connection, _SQL["page"], {}, read=Wild.from_dict, limit=limit, before=before)


def unended(connection: sqlite3.Connection) -> list[Wild]:
    return [_wild(row[0]) for row in connection.execute(_SQL["unended"])]


def newest_of_session(connection: sqlite3.Connection, session_id: str) -> Wild | None:
    row = connection.execute(_SQL["newest_of_session"], {"session_id": session_id}).fetchone()
    return None if row is None else _wild(row[0])


def _wild(record: str) -> Wild:
    return Wild.from_dict(json.loads(record))


def _emit_change(tx: Transaction, wild: Wild, actor: str) -> None:
    facts = {"wild_id": wild.id, "status": wild.status}
    tx.emit(Event(type=EventType.WILD_CHANGED, actor=actor, time=now(), sweep_id=wild.sweep_id, data=facts))


def _json(wild: Wild) -> str:
    return json.dumps(wild.to_dict(), ensure_ascii=False)
