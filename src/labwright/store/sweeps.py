"""Sweeps in the database, and facts about their runs."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, NamedTuple

from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.run import Run, RunStatus
from labwright.domain.sweep import Sweep, SweepStatus
from labwright.store.database import Transaction
from labwright.store.metrics import preference
from labwright.store.paging import page_before
from labwright.store.statements import RUNS, SWEEPS


def insert(tx: Transaction, sweep: Sweep, actor: str, runs: int = 0) -> None:
    tx.execute(SWEEPS["insert"], id=sweep.id, record=json.dumps(sweep.to_dict()))
    data = {"name": sweep.name, "goal": sweep.goal, "method": sweep.method, "status": sweep.status, "runs": runs}
    _emit(tx, EventType.SWEEP_CREATED, sweep, actor, data)


def change(tx: Transaction, before: Sweep, after: Sweep, actor: str, **data: Any) -> Sweep:
    """Store a changed sweep with one event."""
    tx.execute(SWEEPS["update"], id=after.id, record=json.dumps(after.to_dict()))
    if after.status is before.status:
        changed = [name for name in Sweep.__dataclass_fields__ if getattr(before, name) != getattr(after, name)]
        _emit(tx, EventType.SWEEP_UPDATED, after, actor, {"changed": changed, **data})
    else:
        facts = {"from": before.status, "to": after.status, "reason": after.status_reason, **data}
        _emit(tx, EventType.SWEEP_STATUS, after, actor, facts)
    return after


def _emit(tx: Transaction, kind: EventType, sweep: Sweep, actor: str, data: dict[str, Any]) -> None:
    tx.emit(Event(type=kind, actor=actor, time=now(), sweep_id=sweep.id, data=data))


def restore(tx: Transaction, sweep: Sweep) -> None:
    tx.execute(SWEEPS["upsert"], id=sweep.id, record=json.dumps(sweep.to_dict()))


def get(connection: sqlite3.Connection, sweep_id: str) -> Sweep:
    row = connection.execute(SWEEPS["get"], {"id": sweep_id}).fetchone()
    if row is None:
        raise NotFound(
            f"There is no sweep {sweep_id}.",
            hint="Create one with POST /sweeps or POST /sweeps/wild, or list them with GET /sweeps.",
        )
    return Sweep.from_dict(json.loads(row[0]))


def page(connection: sqlite3.Connection, limit: int, before: int | None) -> tuple[list[Sweep], int | None]:
    return page_before(connection, SWEEPS["list"], {}, read=Sweep.from_dict, limit=limit, before=before)


def limits(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the limit of active runs of each limited sweep: its `parallel`, or 0 while it is paused."""
    return dict(connection.execute(SWEEPS["limits"]).fetchall())


def with_status(connection: sqlite3.Connection, status: SweepStatus) -> list[Sweep]:
    rows = connection.execute(SWEEPS["with_status"], {"status": status})
    return [Sweep.from_dict(json.loads(row[0])) for row in rows]


def unended_ids(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute(SWEEPS["unended"])}


def counts_of_all(connection: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """Return the number of runs by status for each sweep."""
    found: dict[str, dict[str, int]] = {}
    for sweep_id, status, count in connection.execute(RUNS["count_by_status_in_sweeps"]):
        found.setdefault(sweep_id, {})[status] = count
    return found


class SweepRun(NamedTuple):
    """The facts of a run that its sweep needs."""

    id: str
    status: str
    trial: int | None
    seed: int | None
    config_hash: str | None
    ended_at: str | None
    params: str  # JSON


def runs_of(connection: sqlite3.Connection, sweep_id: str) -> list[SweepRun]:
    return list(map(SweepRun._make, connection.execute(SWEEPS["runs"], {"sweep_id": sweep_id})))


def ready_ids(connection: sqlite3.Connection, sweep_id: str, limit: int) -> list[str]:
    """Return the created runs that are not queued yet, in order."""
    rows = connection.execute(SWEEPS["ready"], {"sweep_id": sweep_id, "limit": limit})
    return [row[0] for row in rows]


def run_times(connection: sqlite3.Connection, sweep_id: str) -> list[tuple[str, str, str | None]]:
    """Return status, start and end of every run that started."""
    return connection.execute(SWEEPS["times"], {"sweep_id": sweep_id}).fetchall()


def earlier_seconds(connection: sqlite3.Connection, sweep_id: str) -> float:
    """Return how long its runs ran in attempts that Slurm requeued."""
    found: float = connection.execute(SWEEPS["earlier_seconds"], {"sweep_id": sweep_id}).fetchone()[0]
    return found


def unended_runs(connection: sqlite3.Connection, sweep_id: str) -> list[Run]:
    rows = connection.execute(SWEEPS["records_of_unended"], {"sweep_id": sweep_id})
    return [Run.from_dict(json.loads(row[0])) for row in rows]


def failed_runs(connection: sqlite3.Connection, sweep_id: str) -> list[Run]:
    """Return the runs that failed or were lost and were not retried."""
    retried = {row[0] for row in connection.execute(SWEEPS["retried"], {"sweep_id": sweep_id})}
    rows = connection.execute(SWEEPS["records_of_failed"], {"sweep_id": sweep_id})
    found = (Run.from_dict(json.loads(row[0])) for row in rows)
    return [run for run in found if run.id not in retried]


def count_to_retry(connection: sqlite3.Connection, sweep_id: str) -> int:
    """Return the number of runs that `failed_runs` finds."""
    count: int = connection.execute(SWEEPS["count_to_retry"], {"sweep_id": sweep_id}).fetchone()[0]
    return count


def parents_of_any(connection: sqlite3.Connection) -> set[str]:
    """Return the runs that other runs depend on."""
    return {row[0] for row in connection.execute(SWEEPS["parents"])}


def metric_values(connection: sqlite3.Connection, sweep_id: str, metric: dict[str, Any]) -> dict[str, float]:
    """Return the value by run, from the newest attempt and the source that the run itself chose. It may be NaN."""
    column = {"best": 2 if metric["goal"] == "min" else 3}.get(metric.get("use", "last"), 1)
    rows = connection.execute(SWEEPS["values_of_metric"], {"sweep_id": sweep_id, "key": metric["key"]})
    found: dict[str, tuple[Any, ...]] = {}
    for row in rows:
        known = found.setdefault(row[0], row)
        if known is not row and preference(row[4], row[5]) < preference(known[4], known[5]):
            found[row[0]] = row
    return {run_id: float(row[column]) for run_id, row in found.items() if row[column] is not None}


def metric_keys(connection: sqlite3.Connection, sweep_id: str) -> list[str]:
    """Return the metric keys, the most logged ones first."""
    return [row[0] for row in connection.execute(SWEEPS["metric_keys"], {"sweep_id": sweep_id})]


def count_by_status(connection: sqlite3.Connection, sweep_id: str) -> dict[str, int]:
    counts: dict[str, int] = {status.value: 0 for status in RunStatus}
    counts.update(dict(connection.execute(RUNS["count_by_status_in_sweep"], {"sweep_id": sweep_id})))
    return counts


def with_command(connection: sqlite3.Connection, command: str) -> list[Sweep]:
    """Return the sweeps with this command, newest first, without stopped ones."""
    rows = connection.execute(SWEEPS["with_command"], {"base_command": command})
    return [Sweep.from_dict(json.loads(row[0])) for row in rows]
