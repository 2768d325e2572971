"""Saved views in the database."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from labwright.domain.clock import now
from labwright.domain.event import Event, EventType
from labwright.store.database import Transaction
from labwright.store.statements import REST


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """A named view of the runs table: its filter, order, groups and columns."""

    name: str
    query: str  # the query string of the dashboard's address


def all_views(connection: sqlite3.Connection) -> list[SavedView]:
    """Return all saved views by name."""
    return [SavedView(name=name, query=query) for name, query in connection.execute(REST["views"])]


def save(tx: Transaction, view: SavedView, actor: str) -> None:
    tx.execute(REST["save_view"], name=view.name, query=view.query)
    tx.emit(Event(type=EventType.VIEW_SAVED, actor=actor, time=now(), data={"name": view.name}))


def delete(tx: Transaction, name: str, actor: str) -> None:
    tx.execute(REST["delete_view"], name=name)
    tx.emit(Event(type=EventType.VIEW_DELETED, actor=actor, time=now(), data={"name": name}))
