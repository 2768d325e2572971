"""Dependencies between runs in the database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from labwright.domain.run import Run
from labwright.store.database import Transaction
from labwright.store.statements import RUNS


def add(tx: Transaction, child: str, parents: Sequence[str]) -> None:
    for parent in parents:
        tx.execute(RUNS["add_dependency"], child=child, parent=parent)


def set_blocked(tx: Transaction, run_id: str, by: int) -> None:
    """Store how many unfinished parents block the run."""
    tx.execute(RUNS["set_blocked"], id=run_id, blocked_by=by)


def unblock(tx: Transaction, run_id: str) -> None:
    """Count one parent of the run as finished."""
    tx.execute(RUNS["unblock"], id=run_id)


def children(connection: sqlite3.Connection, parent: str) -> list[str]:
    """Return the ids of the runs that depend on this one, including deleted runs."""
    return [row[0] for row in connection.execute(RUNS["children"], {"parent": parent})]


def child_runs(connection: sqlite3.Connection, parent: str) -> list[Run]:
    rows = connection.execute(RUNS["child_records"], {"parent": parent})
    return [Run.from_dict(json.loads(row[0])) for row in rows]


def unfinished(connection: sqlite3.Connection, run_ids: Sequence[str]) -> list[str]:
    """Return those of these runs that have not finished."""
    return [row[0] for row in connection.execute(RUNS["unfinished"], {"ids": json.dumps(run_ids)})]


def forget(tx: Transaction, parent: str) -> None:
    tx.execute(RUNS["forget_dependencies"], parent=parent)
