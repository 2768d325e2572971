"""The verbs of metrics: add points over HTTP, read series, list artifacts."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.metrics.unread import part_of
from labwright.domain.metrics.points import as_json
from labwright.paths import ARTIFACTS
from labwright.services.runs import verbs as run_verbs
from labwright.store import metric_files, metrics
from labwright.store.idempotency import IdempotencyKey, first_answer
from labwright.store.metrics import Series

_SYSTEM = "system"  # source of the sidecar's samples
_PART_POINTS = 1000
Point = tuple[str, int, float | str, float | None]  # key, step, value, time


def add_points(
    lab: Lab, run_id: str, points: Sequence[Point], received_at: float, key: IdempotencyKey | None = None
) -> int:
    """Store points durably; the series show them moments later. Points with the same key are stored once."""
    run_verbs.get(lab, run_id)
    if key is None:
        lab.unread.append_points(run_id, lab.paths.run(run_id).metrics, _lines_of(points, received_at))
    elif not _is_known(lab, key, len(points)):
        parts = [points[at : at + _PART_POINTS] for at in range(0, len(points), _PART_POINTS)]
        once = {"key": key.key, "digest": key.digest}
        # Each part is one line, so it is complete or missing; ingest takes it once.
        lab.unread.append_points(
            run_id,
            lab.paths.run(run_id).metrics,
            [{"once": {**once, "part": n}, "lines": _lines_of(part, received_at)} for n, part in enumerate(parts)],
            key,
        )
    lab.metrics_arrived(run_id)
    return len(points)


def _is_known(lab: Lab, key: IdempotencyKey, count: int) -> bool:
    """Whether all parts were ingested. Raises Conflict if the key was used for other points."""
    known = [first_answer(lab.db.reader(), part_of(key, n)) for n in (0, (count - 1) // _PART_POINTS)]
    return known[-1] is not None


def _lines_of(points: Sequence[Point], received_at: float) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    newest: dict[tuple[int, float], dict[str, float | str]] = {}
    for key, step, value, moment in points:
        at = (step, moment or received_at)
        numbers = newest.get(at)
        if numbers is None or key in numbers:  # a repeated point gets its own line
            numbers = newest[at] = {}
            lines.append({"s": step, "t": at[1], "m": numbers})
        numbers[key] = value
    return lines


def read(
    lab: Lab, run_id: str, keys: Sequence[str] | None, max_points: int, x: str, source: str | None
) -> dict[str, Any]:
    """Return one series per key, downsampled with minima and maxima kept; without keys, all series."""
    refused = run_verbs.get(lab, run_id).refused
    found = metrics.series_of(lab.db.reader(), run_id)
    chosen = [s for s in found if s.source == source] if source else metrics.preferred(found)
    known = {series.key for series in found}
    meant = known if keys is None else split_keys(keys, known)
    requested = [series for series in chosen if series.key in meant]
    return {
        "run_id": run_id,
        "keys": sorted(known),
        "unknown": sorted(meant - known),
        "refused": refused,
        "series": [_shown(lab, found, series, max_points, x) for series in requested],
    }


def system(lab: Lab, run_id: str, max_points: int, x: str) -> dict[str, Any]:
    """Return the system metrics that the sidecar sampled."""
    run_verbs.get(lab, run_id)
    found = metrics.series_of(lab.db.reader(), run_id)
    sampled = metrics.preferred([series for series in found if series.source == _SYSTEM])
    return {"run_id": run_id, "series": [_shown(lab, found, series, max_points, x) for series in sampled]}


def _shown(lab: Lab, of_run: list[Series], series: Series, max_points: int, x: str) -> dict[str, Any]:
    points = metrics.read(lab.db.reader(), series, max_points, with_times=x == "time")
    known = series.statistics
    shown: dict[str, Any] = {
        "key": series.key,
        "source": series.source,
        "attempt": series.attempt,
        "count": known.count,
        "min": known.low,
        "max": known.high,
        "mean": known.mean,
        "last": as_json(known.last),
        "last_step": known.last_step,
        "steps": points.steps.tolist(),
        "values": [as_json(value) for value in points.values],
    }
    if x == "time":
        shown["times"] = points.times.tolist()
    if x == "epoch":
        shown["epochs"] = [as_json(epoch) for epoch in epochs_at(lab, of_run, points.steps)]
    return shown


def artifacts(lab: Lab, run_id: str) -> list[dict[str, Any]]:
    run_verbs.get(lab, run_id)
    found = metric_files.artifacts(lab.db.reader(), run_id)
    folder = lab.paths.run(run_id).dir
    return [{**artifact, "size": _size_in(folder, artifact["path"])} for artifact in found]


def _size_in(folder: str, path: str) -> int | None:
    """Return the size, or None if the file is outside of the run folder or missing."""
    try:
        return os.stat(f"{folder}/{path}").st_size if path.startswith(f"{ARTIFACTS}/") else None
    except (OSError, ValueError):  # a script may log an invalid path
        return None


def split_keys(texts: Iterable[str], known: Collection[str]) -> set[str]:
    """Return the keys in the texts. A text that is not a key of the run is split at its commas."""
    meant: set[str] = set()
    for text in texts:
        meant.update([text] if text in known else (part.strip() for part in text.split(",")))
    return meant - {""}


EPOCH_KEYS = ("epoch", "train/epoch")  # used by scripts and by the Hugging Face trainer
_MAX_POINTS = 100_000


def epochs_at(lab: Lab, of_run: Sequence[Series], steps: Sequence[int]) -> list[float]:
    """Return the last logged epoch for each step, or NaN."""
    by_key = {series.key: series for series in metrics.preferred(list(of_run))}
    series = next((by_key[key] for key in EPOCH_KEYS if key in by_key), None)
    if series is None:
        return [math.nan] * len(steps)
    logged = metrics.read(lab.db.reader(), series, _MAX_POINTS, with_times=False)
    return [value_at(logged.steps, logged.values, step) for step in steps]


def value_at(xs: Sequence[float], values: Sequence[float], x: float) -> float:
    """Return the last value up to `x`, or NaN before the first. `xs` is sorted."""
    position = bisect_right(xs, x) - 1
    return values[position] if position >= 0 else math.nan
