"""How far the metric files of runs were read, and the artifacts they name, in the database."""

from __future__ import annotations

import sqlite3
from typing import Any

from labwright.store.database import Transaction
from labwright.store.statements import METRICS

_OF_AN_ARTIFACT = ("key", "step", "kind", "path", "caption", "time")


def positions(connection: sqlite3.Connection, run_id: str) -> dict[str, int]:
    """Return the position of each file by name."""
    return dict(connection.execute(METRICS["files_of_run"], {"run_id": run_id}).fetchall())


def find(connection: sqlite3.Connection, run_id: str, name: str) -> tuple[Any, ...] | None:
    """Return how far a file was read: position, source, attempt and checksum, or None.

    A part after the position may be stored for some keys: `part_end` and `part_keys` say how far.
    """
    found: tuple[Any, ...] | None = connection.execute(METRICS["file"], {"run_id": run_id, "name": name}).fetchone()
    return found


def put(tx: Transaction, run_id: str, name: str, **facts: Any) -> None:
    tx.execute(METRICS["set_file"], run_id=run_id, name=name, **facts)


def add_artifact(tx: Transaction, run_id: str, **facts: Any) -> None:
    tx.execute(METRICS["insert_artifact"], run_id=run_id, **facts)


def artifacts(connection: sqlite3.Connection, run_id: str) -> list[dict[str, Any]]:
    rows = connection.execute(METRICS["artifacts"], {"run_id": run_id})
    return [dict(zip(_OF_AN_ARTIFACT, row, strict=True)) for row in rows]
