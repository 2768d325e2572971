"""The stored stream of events, read by position."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection

from labwright.domain.event import Event, EventType
from labwright.store.statements import REST


def after(
    connection: sqlite3.Connection,
    seq: int,
    limit: int,
    run_id: str | None = None,
    types: Collection[str] | None = None,
) -> list[Event]:
    values = {
        "after": seq,
        "limit": limit,
        "run_id": run_id,
        "types": None if types is None else json.dumps(list(types)),
    }
    rows = connection.execute(REST["events_of_run" if run_id else "events_after"], values)
    return [_event(row) for row in rows]


def last_seq(connection: sqlite3.Connection) -> int:
    return int(connection.execute(REST["last_event"]).fetchone()[0])


def any_after(connection: sqlite3.Connection, seq: int, *, but: EventType) -> bool:
    return bool(connection.execute(REST["has_event_after"], {"after": seq, "but": but}).fetchone()[0])


def _event(row: tuple[int, str, str, str, str | None, str | None, str]) -> Event:
    return Event(
        seq=row[0],
        time=row[1],
        type=EventType(row[2]),
        actor=row[3],
        run_id=row[4],
        sweep_id=row[5],
        data=json.loads(row[6]),
    )
