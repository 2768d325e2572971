"""Memories in the database."""

from __future__ import annotations

import json
import sqlite3

from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.session import Memory
from labwright.store.database import Transaction
from labwright.store.paging import page_before
from labwright.store.statements import SESSIONS


def insert(tx: Transaction, memory: Memory, actor: str) -> None:
    tx.execute(SESSIONS["insert_memory"], id=memory.id, record=_json(memory))
    _emit(tx, EventType.MEMORY_SAVED, memory, actor)


def change(tx: Transaction, memory: Memory, actor: str) -> None:
    tx.execute(SESSIONS["update_memory"], id=memory.id, record=_json(memory))
    _emit(tx, EventType.MEMORY_SAVED, memory, actor)


def delete(tx: Transaction, memory: Memory, actor: str) -> None:
    tx.execute(SESSIONS["delete_memory"], id=memory.id)
    _emit(tx, EventType.MEMORY_DELETED, memory, actor)


def get(connection: sqlite3.Connection, memory_id: str) -> Memory:
    row = connection.execute(SESSIONS["get_memory"], {"id": memory_id}).fetchone()
    if row is None:
        raise NotFound(f"There is no memory {memory_id}.", hint="List them with GET /memories.")
    return Memory.from_dict(json.loads(row[0]))


def page(
    connection: sqlite3.Connection, accepted: bool | None, q: str | None, limit: int, before: int | None
) -> tuple[list[Memory], int | None]:
    values = {"accepted": accepted, "q": q}
    return page_before(connection, SESSIONS["memories_page"], values, read=Memory.from_dict, limit=limit, before=before)


def for_session(connection: sqlite3.Connection, session_id: str, limit: int) -> list[Memory]:
    """Return the accepted notes and those of this session, newest first."""
    rows = connection.execute(SESSIONS["memories_for"], {"session_id": session_id, "limit": limit})
    return [Memory.from_dict(json.loads(row[0])) for row in rows]


def _emit(tx: Transaction, kind: EventType, memory: Memory, actor: str) -> None:
    data = {"memory_id": memory.id, "accepted": memory.accepted}
    tx.emit(Event(type=kind, actor=actor, time=now(), data=data))


def _json(memory: Memory) -> str:
    return json.dumps(memory.to_dict(), ensure_ascii=False)
