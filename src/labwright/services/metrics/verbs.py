"""Reading and writing one run's metrics: its series, and points sent over HTTP."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.metrics.unread import part_of
from labwright.domain.metrics.points import Points, as_json
from labwright.paths import ARTIFACTS
from labwright.services.runs import verbs as run_verbs
from labwright.store import metric_files, metrics
from labwright.store.idempotency import IdempotencyKey, first_answer
from labwright.store.metrics import Series

_SYSTEM = "system"  # the source
_PART_POINTS = 1000
Point = tuple[str, int, float | str, float | None]  # key, step, value, time


def add_points(
    lab: Lab, run_id: str, points: Sequence[Point], received_at: float, key: IdempotencyKey | None = None
) -> int:
    """Durable once this returns; the series show it moments later. What was sent with the same key is taken once."""
    run_verbs.get(lab, run_id)
    if key is None:
        lab.unread.append_points(run_id, lab.paths.run(run_id).metrics, _lines_of(points, received_at))
    elif not _is_known(lab, key, len(points)):
        parts = [points[at : at + _PART_POINTS] for at in range(0, len(points), _PART_POINTS)]
        once = {"key": key.key, "digest": key.digest}
        # Each part is one line, whole or not there; who reads it takes it once.
        lab.unread.append_points(
            run_id,
            lab.paths.run(run_id).metrics,
            [{"once": {**once, "part": n}, "lines": _lines_of(part, received_at)} for n, part in enumerate(parts)],
            key,
        )
    lab.metrics_arrived(run_id)
    return len(points)


def _is_known(lab: Lab, key: IdempotencyKey, count: int) -> bool:
    """Of points that a kill cut short the last part is not. Raises Conflict if the key was used for others."""
    known = [first_answer(lab.db.reader(), part_of(key, n)) for n in (0, (count - 1) // _PART_POINTS)]
    return known[-1] is not None


def _lines_of(points: Sequence[Point], received_at: float) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    newest: dict[tuple[int, float], dict[str, float | str]] = {}
    for key, step, value, moment in points:
        at = (step, moment or received_at)
        numbers = newest.get(at)
        if numbers is None or key in numbers:  # a repeated point gets a line of its own: it too arrived
            numbers = newest[at] = {}
            lines.append({"s": step, "t": at[1], "m": numbers})
        numbers[key] = value
    return lines


def read(
    lab: Lab, run_id: str, keys: Sequence[str] | None, max_points: int, x: str, source: str | None
) -> dict[str, Any]:
    """One series a key, thinned with extremes kept; without keys, all of them. What the run does not have is named."""
    refused = run_verbs.get(lab, run_id).refused
    found = metrics.series_of(lab.db.reader(), run_id)
    chosen = [s for s in found if s.source == source] if source else metrics.preferred(found)
    known = {series.key for series in found}
    meant = known if keys is None else meant_keys(keys, known)
    wanted = [series for series in chosen if series.key in meant]
    return {
        "run_id": run_id,
        "keys": sorted(known),
        "unknown": sorted(meant - known),
        "refused": refused,
        "series": [_shown(lab, found, series, max_points, x) for series in wanted],
    }


def system(lab: Lab, run_id: str, max_points: int, x: str) -> dict[str, Any]:
    """What the run took of the machine, as its sidecar sampled it."""
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
    """None for what stayed where the script has it, or is gone."""
    try:
        return os.stat(f"{folder}/{path}").st_size if path.startswith(f"{ARTIFACTS}/") else None
    except (OSError, ValueError):  # a script may write any path, also one that no file can have
        return None


def meant_keys(asked: Iterable[str], known: Collection[str]) -> set[str]:
    """A key of the run is that key, also with commas in it; anything else is taken apart at its commas."""
    meant: set[str] = set()
    for text in asked:
        meant.update([text] if text in known else (part.strip() for part in text.split(",")))
    return meant - {""}


KEYS = ("epoch", "train/epoch")  # as scripts and the Hugging Face trainer name it
_MAX_POINTS = 100_000


def epochs_at(lab: Lab, of_run: Sequence[Series], steps: Sequence[int]) -> list[float]:
    """The last epoch told up to each step; NaN where none was."""
    told = _told(lab, of_run)
    return [value_at(told.steps, told.values, step) for step in steps]


def _told(lab: Lab, of_run: Sequence[Series]) -> Points:
    by_key = {series.key: series for series in metrics.preferred(list(of_run))}
    found = next((by_key[key] for key in KEYS if key in by_key), None)
    if found is None:
        return Points.empty()
    return metrics.read(lab.db.reader(), found, _MAX_POINTS, with_times=False)


def value_at(xs: Sequence[float], values: Sequence[float], x: float) -> float:
    """The last value up to `x`; NaN before the first. `xs` ascends."""
    position = bisect_right(xs, x) - 1
    return values[position] if position >= 0 else math.nan
