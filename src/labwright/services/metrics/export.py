"""Every stored point of a run, at full resolution, as lines of CSV or JSON; never all of them at once."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.errors import NotFound
from labwright.domain.metrics.points import Points, as_json, listed
from labwright.services.metrics.verbs import meant_keys
from labwright.services.runs import verbs as run_verbs
from labwright.store import metrics
from labwright.store.metrics import Series

COLUMNS = ("key", "step", "time", "value", "source", "attempt")
Row = tuple[Any, ...]
_BLOCK_ROWS = 2000


def export(lab: Lab, run_id: str, form: str, keys: Sequence[str] | None, *, with_run: bool) -> Iterator[str]:
    """What is wrong is said before the first line."""
    run_verbs.get(lab, run_id)
    found = metrics.series_of(lab.db.reader(), run_id)
    known = {series.key for series in found}
    meant = known if keys is None else meant_keys(keys, known)
    if missing := sorted(meant - known):
        hint = f"It has: {listed(known) or 'none yet'}."
        raise NotFound(f"Run {run_id} has no metric {missing[0]!r}.", hint=hint)
    wanted = [series for series in found if series.key in meant]
    first = (run_id,) if with_run else ()
    names = ("run_id", *COLUMNS) if with_run else COLUMNS
    blocks = (block for series in wanted for block in _rows(lab, series, first))
    return _WRITERS[form](names, _joined(blocks))


def _rows(lab: Lab, series: Series, first: Row) -> Iterator[list[Row]]:
    """Found again by count after each part: a chunk may be merged with others while somebody downloads."""
    done = 0
    while done < series.statistics.count and (points := metrics.points_from(lab.db.reader(), series, done)):
        done += len(points)
        yield [(*first, *row) for row in _columns(series, points)]


def _joined(blocks: Iterator[list[Row]]) -> Iterator[list[Row]]:
    """Each block is handed from thread to thread, which costs more than a short series does."""
    rows: list[Row] = []
    for block in blocks:
        rows += block
        if len(rows) >= _BLOCK_ROWS:
            yield rows
            rows = []
    yield rows


def _columns(series: Series, points: Points) -> Iterator[Row]:
    for step, time, value in zip(points.steps, points.times, points.values, strict=True):
        yield series.key, step, round(time, 3), as_json(value), series.source, series.attempt


def _csv(names: Row, blocks: Iterator[list[Row]]) -> Iterator[str]:
    yield _csv_lines([names])
    for block in blocks:
        yield _csv_lines(block)


def _csv_lines(rows: list[Row]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _jsonl(names: Row, blocks: Iterator[list[Row]]) -> Iterator[str]:
    for block in blocks:
        yield "".join(f"{json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)}\n" for row in block)


_WRITERS: dict[str, Callable[[Row, Iterator[list[Row]]], Iterator[str]]] = {"csv": _csv, "jsonl": _jsonl}
