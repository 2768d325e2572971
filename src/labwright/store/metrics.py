"""Metric series in the database: appended in chunks, read completely or thinned."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from labwright.domain.metrics.points import Points, Statistics, as_json
from labwright.domain.metrics.series import (
    CHUNK_POINTS,
    SMALL_POINTS,
    BucketExtremes,
    Chunk,
    WholeSeries,
    pack,
    thin,
    unpack,
    unpack_steps,
    unpack_times,
)
from labwright.domain.run import REHEARSAL
from labwright.store.database import Transaction
from labwright.store.statements import METRICS

_MERGE_COUNT = CHUNK_POINTS // SMALL_POINTS
_THIN_FROM_LEVELS = 4  # a series longer than the limit times this is read from its stored extremes
_SUMMARY_KEYS = 200
_SOURCES_OF_A_KEY = 4  # and attempts; one of them is shown
_EXPORT_CHUNKS = 8
_AT_ONCE = 500  # series packed and written together
_ChunkRow = tuple[int | bytes, ...]


@dataclass(slots=True, kw_only=True)
class Series:
    id: int
    key: str
    source: str
    attempt: int
    ascending: bool = True
    statistics: Statistics = field(default_factory=Statistics)


def find_series(connection: sqlite3.Connection, key: str, run_id: str, source: str, attempt: int) -> Series | None:
    wanted = {"run_id": run_id, "key": key, "source": source, "attempt": attempt}
    row = connection.execute(METRICS["find_series"], wanted).fetchone()
    return None if row is None else _series((row[0], key, source, attempt, *row[1:]))


def series_of_source(connection: sqlite3.Connection, run_id: str, source: str, attempt: int) -> dict[str, Series]:
    """Return all series of a source by key. For many keys this is faster than one query each."""
    wanted = {"run_id": run_id, "source": source, "attempt": attempt}
    return {row[1]: _series(row) for row in connection.execute(METRICS["series_of_source"], wanted)}


def count_own_series(connection: sqlite3.Connection, run_id: str) -> int:
    """Return the number of series without system metrics."""
    return int(connection.execute(METRICS["count_own_series"], {"run_id": run_id}).fetchone()[0])


def begin(tx: Transaction, run_id: str, source: str, attempt: int, found: Sequence[tuple[str, Points]]) -> None:
    """Create series with their first points. A run may start with a hundred thousand of them."""
    for start in range(0, len(found), _AT_ONCE):
        series_rows: list[tuple[object, ...]] = []
        chunk_rows: list[_ChunkRow] = []
        next_id = tx.execute(METRICS["next_series"]).fetchone()[0]
        for number, (key, points) in enumerate(found[start : start + _AT_ONCE], next_id):
            series = Series(id=number, key=key, source=source, attempt=attempt, ascending=points.is_ascending)
            series.statistics.add(points)
            series_rows.append((*_facts(series), number, run_id, key, source, attempt))
            chunk_rows += _chunks_of(number, points)
        tx.connection.executemany(METRICS["insert_series"], series_rows)
        tx.connection.executemany(METRICS["insert_chunk"], chunk_rows)


def _series(row: tuple[Any, ...]) -> Series:
    number, key, source, attempt, ascending, count, finite, total, low, high, last, last_step, last_time = row
    known = Statistics(count, finite, total, low, high, None if last is None else float(last), last_step, last_time)
    return Series(id=number, key=key, source=source, attempt=attempt, ascending=bool(ascending), statistics=known)


def append(tx: Transaction, grown: Sequence[tuple[Series, Points]]) -> None:
    """Append points in order of arrival. Fill a short last chunk first and merge short chunks."""
    for start in range(0, len(grown), _AT_ONCE):
        _append_some(tx, grown[start : start + _AT_ONCE])


def _append_some(tx: Transaction, grown: Sequence[tuple[Series, Points]]) -> None:
    tails = _short_tails(tx, [series.id for series, _ in grown])
    added: list[_ChunkRow] = []
    filled: list[_ChunkRow] = []
    full: list[int] = []
    for series, points in grown:
        _note(series, points)
        if series.id in tails:
            chunk_id, whole = tails[series.id]
            whole.extend(points)
            filled.append((*_columns(whole.part(0, CHUNK_POINTS)), chunk_id))
            if len(whole) < SMALL_POINTS:
                continue  # nothing to merge before it is full
            points = whole.part(CHUNK_POINTS, len(whole))
        added += _chunks_of(series.id, points)
        full.append(series.id)
    tx.connection.executemany(METRICS["replace_chunk"], filled)
    tx.connection.executemany(METRICS["insert_chunk"], added)
    tx.connection.executemany(METRICS["update_series"], [(*_facts(series), series.id) for series, _ in grown])
    for series_id in full:
        _merge_small(tx, series_id)


def _note(series: Series, points: Points) -> None:
    known = series.statistics
    follows = known.last_step is None or points.steps[0] > known.last_step
    series.ascending = series.ascending and follows and points.is_ascending
    known.add(points)


def _facts(series: Series) -> tuple[object, ...]:
    known = series.statistics
    return (
        int(series.ascending),
        known.count,
        known.finite,
        known.total,
        known.low,
        known.high,
        repr(known.last),
        known.last_step,
        known.last_time,
    )


def _short_tails(tx: Transaction, series_ids: list[int]) -> dict[int, tuple[int, Points]]:
    """Return the number and content of the last chunk of each series that has room in it."""
    rows = tx.execute(METRICS["short_tails"], series_ids=json.dumps(series_ids), small=SMALL_POINTS)
    return {series_id: (number, unpack(Chunk(*chunk))) for series_id, number, *chunk in rows}


def _chunks_of(series_id: int, points: Points) -> Iterator[_ChunkRow]:
    if 0 < len(points) <= CHUNK_POINTS:
        yield series_id, *_columns(points)
        return
    for start in range(0, len(points), CHUNK_POINTS):
        yield series_id, *_columns(points.part(start, start + CHUNK_POINTS))


def _columns(points: Points) -> tuple[int, bytes, bytes, bytes, bytes]:
    chunk = pack(points)
    return chunk.count, chunk.steps, chunk.times, chunk.levels, chunk.values


def _merge_small(tx: Transaction, series_id: int) -> None:
    """Merge eight short chunks in a row into one, so slow series become as compact as fast ones."""
    rows = tx.execute(METRICS["last_counts"], series_id=series_id, limit=_MERGE_COUNT).fetchall()
    if len(rows) < _MERGE_COUNT or not all(SMALL_POINTS <= row[1] < CHUNK_POINTS // 2 for row in rows):
        return
    merged = Points.empty()
    for row in reversed(tx.execute(METRICS["last_chunks"], series_id=series_id, limit=_MERGE_COUNT).fetchall()):
        merged.extend(unpack(Chunk(*row[1:])))
    first = rows[-1][0]
    tx.execute(METRICS["delete_chunks_after"], series_id=series_id, id=first)
    tx.connection.execute(METRICS["replace_chunk"], (*_columns(merged.part(0, CHUNK_POINTS)), first))
    tx.connection.executemany(METRICS["insert_chunk"], _chunks_of(series_id, merged.part(CHUNK_POINTS, len(merged))))


def series_of(connection: sqlite3.Connection, run_id: str) -> list[Series]:
    return [_series(row) for row in connection.execute(METRICS["series_of_run"], {"run_id": run_id})]


def weighed_anew(connection: sqlite3.Connection, run_id: str, longest: float = math.inf) -> list[Series]:
    """Recompute the statistics of series with unordered steps, and return those that changed.

    The last arrival of a step counts.
    """
    found = []
    unordered = [_series(row) for row in connection.execute(METRICS["unordered_series"], {"run_id": run_id})]
    for series in [series for series in unordered if series.statistics.count <= longest]:
        newest: dict[int, float] = {}
        for row in connection.execute(METRICS["chunks"], {"series_id": series.id}):
            points = unpack(Chunk(*row))
            newest.update(zip(points.steps, points.values, strict=True))
        before = replace(series.statistics)
        series.statistics.weigh_anew(newest.values())
        if series.statistics != before:
            found.append(series)
    return found


def save_statistics(tx: Transaction, run_id: str, found: Sequence[Series]) -> None:
    tx.connection.executemany(METRICS["update_series"], [(*_facts(series), series.id) for series in found])
    save_summary(tx, run_id)


def last_of_finished(connection: sqlite3.Connection, key: str) -> dict[str, float]:
    """Return the last value by finished run, if it is a number. The preferred series counts.

    Archived runs and rehearsals are left out: their numbers are not results.
    """
    rows = connection.execute(METRICS["last_of_finished"], {"key": key, "rehearsal": REHEARSAL}).fetchall()
    rows.sort(key=lambda row: preference(row[1], row[2]), reverse=True)
    newest = {row[0]: float(row[3]) for row in rows}
    return {run_id: value for run_id, value in newest.items() if math.isfinite(value)}


def own_keys(connection: sqlite3.Connection, limit: int) -> list[str]:
    """Return the keys that commands log, without system metrics."""
    return [row[0] for row in connection.execute(METRICS["own_keys"], {"limit": limit})]


def read(connection: sqlite3.Connection, series: Series, max_points: int, *, with_times: bool = True) -> Points:
    """Return a series in step order, thinned with every extreme kept. Without times, long series are read faster."""
    if series.ascending and series.statistics.count > max_points * _THIN_FROM_LEVELS:
        return _read_levels(connection, series, max_points, with_times)
    return thin(_all_points(connection, series), max_points)


def _all_points(connection: sqlite3.Connection, series: Series) -> Points:
    points = Points.empty()
    for row in connection.execute(METRICS["chunks"], {"series_id": series.id}):
        points.extend(unpack(Chunk(*row)))
    return points.in_step_order()


def read_whole(connection: sqlite3.Connection, series: Series) -> WholeSeries:
    whole = WholeSeries()
    if series.ascending:
        for row in connection.execute(METRICS["chunks"], {"series_id": series.id}):
            whole.add(Chunk(*row))
    else:
        points = _all_points(connection, series)
        whole.add_points(points.steps, points.values)
    return whole


def points_from(connection: sqlite3.Connection, series: Series, offset: int) -> Points:
    """Return some points after the first `offset` in order of arrival, or none at the end."""
    points = Points.empty()
    wanted = {"series_id": series.id, "limit": _EXPORT_CHUNKS}
    if offset:
        rows = connection.execute(METRICS["chunks_from"], {**wanted, "offset": offset})
    else:  # most series are short, and a run may have a hundred thousand of them
        rows = connection.execute(METRICS["first_chunks"], wanted)
    for start, *chunk in rows:
        part = unpack(Chunk(*chunk))
        points.extend(part.part(max(0, offset - start), len(part)))
    return points


def _read_levels(connection: sqlite3.Connection, series: Series, max_points: int, with_times: bool) -> Points:
    found = BucketExtremes()
    for count, steps, times, levels in connection.execute(METRICS["levels"], {"series_id": series.id}):
        found.add(levels, unpack_steps(steps, count), unpack_times(times) if with_times else ())
    first = connection.execute(METRICS["chunks"], {"series_id": series.id}).fetchone()
    return _with_ends(found.thin(max_points), unpack(Chunk(*first)).part(0, 1), series.statistics)


def _with_ends(points: Points, first: Points, known: Statistics) -> Points:
    """Add the first and the last point, which the extremes may leave out."""
    if first.steps[0] < points.steps[0]:
        first.extend(points)
        points = first
    if known.last_step is not None and known.last_step > points.steps[-1]:
        points.steps.append(known.last_step)
        points.times.append(known.last_time or 0.0)
        points.values.append(math.nan if known.last is None else known.last)
    return points


def summary_of(found: list[Series]) -> dict[str, dict[str, Any]]:
    """Return last, min, max, mean and step of each metric, from the newest attempt and its best source."""
    summary: dict[str, dict[str, Any]] = {}
    for series in sorted(preferred(found)[:_SUMMARY_KEYS], key=lambda series: series.key):
        known = series.statistics
        summary[series.key] = {
            "last": as_json(known.last),
            "min": known.low,
            "max": known.high,
            "mean": known.mean,
            "step": known.last_step,
            "source": series.source,
        }
    return summary


_RANK = {"sdk": 0, "http": 1, "file": 2, "tensorboard": 3, "trainer_state": 4, "output": 5}


def preferred(found: list[Series]) -> list[Series]:
    """Return one series per key: of the newest attempt, and there of the source that the run itself chose."""
    best: dict[str, Series] = {}
    for series in found:
        known = best.get(series.key)
        if known is None or _order(series) < _order(known):
            best[series.key] = series
    return list(best.values())


def _order(series: Series) -> tuple[int, int]:
    return preference(series.source, series.attempt)


def preference(source: str, attempt: int) -> tuple[int, int]:
    """Return the sort key of a series: newer attempts, then better sources, come first."""
    return -attempt, _RANK.get(source, 9)


def save_summary(tx: Transaction, run_id: str) -> None:
    """Store the summary of the run's newest metrics, and how many more metrics there are."""
    rows = tx.execute(METRICS["newest_series"], run_id=run_id, limit=_SUMMARY_KEYS * _SOURCES_OF_A_KEY)
    summary = summary_of([_series(row) for row in rows])
    left_out = int(tx.execute(METRICS["count_keys"], run_id=run_id).fetchone()[0]) - len(summary)
    tx.execute(METRICS["set_summary"], run_id=run_id, summary=json.dumps(summary), left_out=left_out)


def save_refused(tx: Transaction, run_id: str, refused: dict[str, Any]) -> None:
    tx.execute(METRICS["set_refused"], run_id=run_id, refused=json.dumps(refused))


def delete_of_run(tx: Transaction, run_id: str) -> None:
    for name in ("chunks", "series", "files", "artifacts"):
        tx.execute(METRICS[f"delete_{name}_of_run"], run_id=run_id)
