"""Saved views in the database."""

from __future__ import annotations

import sqlite3

from labwright.domain.clock import now
from labwright.domain.event import Event, EventType
from labwright.domain.view import View
from labwright.store.database import Transaction
from labwright.store.statements import REST


def all_views(connection: sqlite3.Connection) -> list[View]:
    """By name."""
    return [View(name=name, query=query) for name, query in connection.execute(REST["views"])]


def save(tx: Transaction, view: View, actor: str) -> None:
    tx.execute(REST["save_view"], name=view.name, query=view.query)
    tx.emit(Event(type=EventType.VIEW_SAVED, actor=actor, time=now(), data={"name": view.name}))


def delete(tx: Transaction, name: str, actor: str) -> None:
    tx.execute(REST["delete_view"], name=name)
    tx.emit(Event(type=EventType.VIEW_DELETED, actor=actor, time=now(), data={"name": name}))
