"""Export every stored point of a run as lines of CSV or JSON, block by block."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.errors import NotFound
from labwright.domain.metrics.points import as_json, listed
from labwright.services.metrics.verbs import split_keys
from labwright.services.runs import verbs as run_verbs
from labwright.store import metrics
from labwright.store.metrics import Series

COLUMNS = ("key", "step", "time", "value", "source", "attempt")
Row = tuple[Any, ...]
_BLOCK_ROWS = 2000


def export(lab: Lab, run_id: str, form: str, keys: Sequence[str] | None, *, with_run: bool) -> Iterator[str]:
    """Return the lines. Errors are raised before the first line."""
    run_verbs.get(lab, run_id)
    found = metrics.series_of(lab.db.reader(), run_id)
    known = {series.key for series in found}
    keys_to_export = known if keys is None else split_keys(keys, known)
    if missing := sorted(keys_to_export - known):
        hint = f"Its metrics: {listed(known) or 'none yet'}."
        raise NotFound(f"Run {run_id} has no metric {missing[0]!r}.", hint=hint)
    chosen = [series for series in found if series.key in keys_to_export]
    first = (run_id,) if with_run else ()
    names = ("run_id", *COLUMNS) if with_run else COLUMNS
    blocks = (block for series in chosen for block in _rows(lab, series, first))
    if form == "csv":
        return map(_csv_lines, chain([[names]], _joined(blocks)))
    return (
        "".join(f"{json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)}\n" for row in block)
        for block in _joined(blocks)
    )


def _rows(lab: Lab, series: Series, first: Row) -> Iterator[list[Row]]:
    """Yield the rows. The position is a count, since chunks may be merged during a download."""
    done = 0
    while done < series.statistics.count and (points := metrics.points_from(lab.db.reader(), series, done)):
        done += len(points)
        columns = zip(points.steps, points.times, points.values, strict=True)
        yield [
            (*first, series.key, step, round(time, 3), as_json(value), series.source, series.attempt)
            for step, time, value in columns
        ]


def _joined(blocks: Iterator[list[Row]]) -> Iterator[list[Row]]:
    """Join short blocks, since passing a block between threads costs more than reading it."""
    rows: list[Row] = []
    for block in blocks:
        rows += block
        if len(rows) >= _BLOCK_ROWS:
            yield rows
            rows = []
    yield rows


def _csv_lines(rows: list[Row]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
