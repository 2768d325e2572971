"""Named values in the database."""

from __future__ import annotations

import sqlite3

from labwright.store.database import Transaction
from labwright.store.statements import REST


def get(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute(REST["get_meta"], {"key": key}).fetchone()
    return None if row is None else str(row[0])


def put(tx: Transaction, key: str, value: str) -> None:
    tx.execute(REST["set_meta"], key=key, value=value)


def delete(tx: Transaction, key: str) -> None:
    tx.execute(REST["delete_meta"], key=key)
