"""Pages of records, newest first. Each row has a growing number and a record as JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Record = TypeVar("Record")
_FAR = 2**62  # higher than any row number


def page_before(
    connection: sqlite3.Connection,
    sql: str,
    values: Mapping[str, object],
    *,
    read: Callable[[dict[str, Any]], Record],
    limit: int,
    before: int | None,
) -> tuple[list[Record], int | None]:
    """Return at most `limit` records, and the number before which the next page starts, if any."""
    bounds = {"before": _FAR if before is None else before, "limit": limit + 1}
    rows = connection.execute(sql, {**values, **bounds}).fetchall()
    found = [read(json.loads(record)) for _, record in rows[:limit]]
    return found, rows[limit - 1][0] if len(rows) > limit else None
