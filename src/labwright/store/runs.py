"""Runs in the database: every change and its event, in the caller's transaction."""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from labwright.domain.clock import now
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.run import Run, RunRecord, RunStatus
from labwright.store import dependencies
from labwright.store.database import Transaction
from labwright.store.statements import RUNS

SORTS = {
    "-created_at": "seq DESC",
    "created_at": "seq ASC",
    "-ended_at": "coalesce(ended_at, '') DESC, seq DESC",
    "ended_at": "coalesce(ended_at, '') ASC, seq ASC",
    "name": "name ASC, seq ASC",
    "-name": "name DESC, seq DESC",
    "-priority": "-priority ASC, seq ASC",  # queue order: older runs first
}
_KEYS = {"ended_at": "coalesce(ended_at, '')", "name": "name", "priority": "-priority"}


def insert(tx: Transaction, run: Run, actor: str, blocked_by: int = 0) -> None:
    tx.execute(RUNS["insert"], id=run.id, record=run.to_json(), blocked_by=blocked_by)
    dependencies.add(tx, run.id, run.after)
    _emit(tx, EventType.RUN_CREATED, run, actor, {"status": run.status, "name": run.name})


def insert_many(tx: Transaction, made: Sequence[RunRecord], actor: str) -> None:
    """Insert runs without dependencies."""
    tx.connection.executemany(RUNS["insert"], ({"id": run.id, "record": run.text, "blocked_by": 0} for run in made))
    told = ((run.id, run.sweep_id, {"status": run.status, "name": run.name}) for run in made)
    _emit_many(tx, EventType.RUN_CREATED, told, actor)


def move_many(tx: Transaction, moved: Sequence[tuple[Run, Run]], actor: str) -> None:
    """Store many runs that changed their status, with one event each. Each item is (before, after)."""
    tx.connection.executemany(RUNS["update"], ({"id": after.id, "record": after.to_json()} for _, after in moved))
    told = ((after.id, after.sweep_id, _status_facts(before, after)) for before, after in moved)
    _emit_many(tx, EventType.RUN_STATUS, told, actor)


def _emit_many(
    tx: Transaction, kind: EventType, told: Iterable[tuple[str, str | None, dict[str, Any]]], actor: str
) -> None:
    at, first = now(), tx.next_event_number()
    tx.emit_numbered(
        [
            Event(type=kind, actor=actor, time=at, run_id=run_id, sweep_id=sweep_id, data=data, seq=first + index)
            for index, (run_id, sweep_id, data) in enumerate(told)
        ]
    )


def restore(tx: Transaction, run: Run) -> None:
    """Restore a record from disk, without an event."""
    tx.execute(RUNS["upsert"], id=run.id, record=run.to_json())


def change(tx: Transaction, before: Run, after: Run, actor: str, **data: Any) -> Run:
    """Store a changed run with one event."""
    tx.execute(RUNS["update"], id=after.id, record=after.to_json())
    if after.status is before.status:
        changed = [name for name in Run.__dataclass_fields__ if getattr(before, name) != getattr(after, name)]
        _emit(tx, EventType.RUN_UPDATED, after, actor, {"changed": changed, **data})
        return after
    _emit(tx, EventType.RUN_STATUS, after, actor, {**_status_facts(before, after), **data})
    return after


def _status_facts(before: Run, after: Run) -> dict[str, Any]:
    facts: dict[str, Any] = {"from": before.status, "to": after.status, "reason": after.status_reason}
    if after.is_terminal:
        facts |= {"exit_code": after.exit_code, "signal": after.signal}
    return facts


def notice(tx: Transaction, run: Run, actor: str, text: str) -> None:
    _emit(tx, EventType.RUN_NOTICE, run, actor, {"text": text})


def delete(tx: Transaction, run: Run, actor: str) -> None:
    tx.execute(RUNS["delete"], id=run.id)
    _emit(tx, EventType.RUN_DELETED, run, actor, {"name": run.name})


def forget(tx: Transaction, run_id: str) -> None:
    """Delete the rows of a run that was already deleted, without an event."""
    tx.execute(RUNS["delete"], id=run_id)


def _emit(tx: Transaction, kind: EventType, run: Run, actor: str, data: dict[str, Any]) -> None:
    tx.emit(Event(type=kind, actor=actor, time=now(), run_id=run.id, sweep_id=run.sweep_id, data=data))


def get(connection: sqlite3.Connection, run_id: str) -> Run:
    return Run.from_dict(json.loads(get_json(connection, run_id)))


def get_json(connection: sqlite3.Connection, run_id: str) -> str:
    row = connection.execute(RUNS["get"], {"id": run_id}).fetchone()
    if row is None:
        raise NotFound(f"There is no run {run_id}.", hint="List runs with GET /runs or `labwright ps --all`.")
    return str(row[0])


def events_offset(connection: sqlite3.Connection, run_id: str) -> int | None:
    """Return how far the run's event log was read, or None if there is no such run."""
    row = connection.execute(RUNS["events_offset"], {"id": run_id}).fetchone()
    return None if row is None else int(row[0])


def set_events_offset(tx: Transaction, run_id: str, offset: int) -> None:
    tx.execute(RUNS["set_events_offset"], id=run_id, offset=offset)


def twin(connection: sqlite3.Connection, run: Run) -> str | None:
    """Return a run of the same sweep with the same configuration, seed and command."""
    asked = {name: getattr(run, name) for name in ("sweep_id", "config_hash", "seed", "command")}
    row = connection.execute(RUNS["twin"], asked).fetchone()
    return str(row[0]) if row else None


def newest_folder(connection: sqlite3.Connection) -> str | None:
    """Return the folder of the newest run that has one."""
    row = connection.execute(RUNS["newest_folder"]).fetchone()
    return str(row[0]) if row else None


def move_folders(tx: Transaction, folder: str) -> None:
    """Change the parent folder of all run folders, without events."""
    tx.execute(RUNS["move_folders"], folder=folder)


def workdirs(connection: sqlite3.Connection) -> list[str]:
    return [str(row[0]) for row in connection.execute(RUNS["workdirs"])]


def move_workdir(tx: Transaction, old: str, new: str) -> None:
    tx.execute(RUNS["move_workdir"], old=old, new=new)


def with_status(connection: sqlite3.Connection, *statuses: RunStatus) -> list[Run]:
    found: list[Run] = []
    for status in statuses:
        rows = connection.execute(RUNS["with_status"], {"status": status})
        found.extend(Run.from_dict(json.loads(row[0])) for row in rows)
    return found


def lost_or_newest(connection: sqlite3.Connection, limit: int) -> list[str]:
    """Return lost runs, whose processes may still run, and the newest, which may have just ended."""
    return [str(row[0]) for row in connection.execute(RUNS["lost_or_newest"], {"limit": limit})]


def ids_by_name(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, set[str]]:
    """Return the ids of the runs that have one of these names, by name."""
    found: dict[str, set[str]] = {}
    for name, run_id in connection.execute(RUNS["ids_by_name"], {"names": json.dumps([*names])}):
        found.setdefault(name, set()).add(run_id)
    return found


def count_by_status(connection: sqlite3.Connection) -> dict[str, int]:
    counts: dict[str, int] = {status.value: 0 for status in RunStatus}
    counts.update(dict(connection.execute(RUNS["count_by_status"])))
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    ids: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    sweep_id: str | None = None
    plan_id: str | None = None
    q: str | None = None
    tag: str | None = None
    archived: bool | None = False
    sort: str = "-created_at"


def page(
    connection: sqlite3.Connection, wanted: Filter, limit: int, cursor: str | None
) -> tuple[list[str], str | None]:
    """Return records as JSON text, and the cursor of the next page if any."""
    where, values = _conditions(wanted)
    if cursor:
        condition, more = _after_cursor(wanted.sort, cursor)
        where.append(condition)
        values.update(more)
    field = wanted.sort.removeprefix("-")
    key = _KEYS.get(field, "seq")
    clause = f"WHERE {' AND '.join(where)}" if where else ""
    sql = f"SELECT record, {key}, seq FROM runs {clause} ORDER BY {SORTS[wanted.sort]} LIMIT :limit"  # noqa: S608
    rows = connection.execute(sql, {**values, "limit": limit + 1}).fetchall()
    more_follow = len(rows) > limit
    rows = rows[:limit]
    return [row[0] for row in rows], _cursor(rows[-1][1], rows[-1][2]) if more_follow else None


def _conditions(wanted: Filter) -> tuple[list[str], dict[str, Any]]:
    where: list[str] = []
    values: dict[str, Any] = {}
    if wanted.ids:
        where.append("id IN (SELECT value FROM json_each(:ids))")
        values["ids"] = json.dumps(wanted.ids)
    if wanted.status:
        names = {f"status{index}": status for index, status in enumerate(wanted.status)}
        where.append(f"status IN ({', '.join(f':{name}' for name in names)})")
        values.update(names)
    if wanted.archived is not None:
        where.append("archived = :archived")
        values["archived"] = int(wanted.archived)
    if wanted.sweep_id:
        where.append("sweep_id = :sweep_id")
        values["sweep_id"] = wanted.sweep_id
    if wanted.plan_id:
        where.append("record ->> 'plan_id' = :plan_id")
        values["plan_id"] = wanted.plan_id
    if wanted.q:
        where.append("(instr(lower(name), lower(:q)) OR instr(lower(record ->> 'command'), lower(:q)) OR id = :q)")
        values["q"] = wanted.q
    if wanted.tag:
        where.append("EXISTS (SELECT 1 FROM json_each(record, '$.tags') WHERE value = :tag)")
        values["tag"] = wanted.tag
    return where, values


def _cursor(key: object, seq: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([key, seq]).encode()).decode()


def _after_cursor(sort: str, cursor: str) -> tuple[str, dict[str, Any]]:
    try:
        key, seq = json.loads(base64.urlsafe_b64decode(cursor))
        str(key).encode()
    except (ValueError, binascii.Error, TypeError) as error:
        raise Invalid("The cursor is not valid.", hint="Use X-Next-Cursor of the previous page.") from error
    if (
        type(seq) is not int
        or abs(seq) >= 2**63
        or not isinstance(key, str | int)
        or (isinstance(key, int) and abs(key) >= 2**63)
    ):
        raise Invalid("The cursor is not valid.", hint="Use X-Next-Cursor of the previous page.")
    column = _KEYS.get(sort.removeprefix("-"), "seq")
    sign = "<" if SORTS[sort].endswith("DESC") else ">"
    return f"({column}, seq) {sign} (:cursor_key, :cursor_seq)", {"cursor_key": key, "cursor_seq": seq}


def ended_before(connection: sqlite3.Connection, when: str) -> list[Run]:
    return [Run.from_dict(json.loads(row[0])) for row in connection.execute(RUNS["ended_before"], {"time": when})]


def ids(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute(RUNS["ids"])}


def ids_before_launch(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute(RUNS["before_launch"])}


def first_active_launch(connection: sqlite3.Connection) -> str | None:
    """Return when the oldest active run was launched."""
    (launched,) = connection.execute(RUNS["first_active_launch"]).fetchone()
    return None if launched is None else str(launched)


def snapshot_hashes(connection: sqlite3.Connection, when: str) -> set[str]:
    """Return the snapshot hashes of runs that had not ended before that time."""
    return {row[0] for row in connection.execute(RUNS["snapshot_hashes"], {"time": when})}


def environment_hashes(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute(RUNS["environment_hashes"])}
