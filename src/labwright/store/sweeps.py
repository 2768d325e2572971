"""Sweeps in the database."""

from __future__ import annotations

import json
import sqlite3

from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.sweep import Sweep
from labwright.store.database import Transaction
from labwright.store.statements import REST

_FAR = 2**62


def insert(tx: Transaction, sweep: Sweep, actor: str) -> None:
    tx.execute(REST["insert_sweep"], id=sweep.id, record=json.dumps(sweep.to_dict()))
    tx.emit(
        Event(
            type=EventType.SWEEP_CREATED,
            actor=actor,
            time=now(),
            sweep_id=sweep.id,
            data={"name": sweep.name, "goal": sweep.goal},
        )
    )


def restore(tx: Transaction, sweep: Sweep) -> None:
    tx.execute(REST["upsert_sweep"], id=sweep.id, record=json.dumps(sweep.to_dict()))


def get(connection: sqlite3.Connection, sweep_id: str) -> Sweep:
    row = connection.execute(REST["get_sweep"], {"id": sweep_id}).fetchone()
    if row is None:
        raise NotFound(
            f"There is no sweep {sweep_id}.",
            hint="Make one with POST /sweeps/wild, or list them with GET /sweeps.",
        )
    return Sweep.from_dict(json.loads(row[0]))


def page(connection: sqlite3.Connection, limit: int, before: int | None) -> tuple[list[Sweep], int | None]:
    values = {"before": _FAR if before is None else before, "limit": limit + 1}
    rows = connection.execute(REST["list_sweeps"], values).fetchall()
    sweeps = [Sweep.from_dict(json.loads(row[1])) for row in rows[:limit]]
    return sweeps, rows[limit - 1][0] if len(rows) > limit else None


def all_limited(connection: sqlite3.Connection) -> list[Sweep]:
    """Those that hold runs back: by a parallel limit, or because they are paused or stopped."""
    rows = connection.execute(REST["limited_sweeps"])
    return [Sweep.from_dict(json.loads(row[0])) for row in rows]
