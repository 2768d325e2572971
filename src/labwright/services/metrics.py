"""Reading and writing metrics: one run's series, several runs side by side, points sent over HTTP."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.metrics import write_http_points
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.metric import Points, as_json, mean_and_spread
from labwright.domain.run import Run
from labwright.services import runs as run_verbs
from labwright.store import metrics
from labwright.store.metrics import Series
from labwright.store.statements import METRICS

MAX_RUNS = 200
Point = tuple[str, int, float | str, float | None]  # key, step, value, time


def add_points(lab: Lab, run_id: str, points: Sequence[Point], received_at: float) -> int:
    """Durable once this returns; the series show it moments later."""
    run_verbs.get(lab, run_id)
    lines: list[dict[str, Any]] = []
    newest: dict[tuple[int, float], dict[str, float | str]] = {}
    for key, step, value, moment in points:
        at = (step, moment or received_at)
        numbers = newest.get(at)
        if numbers is None or key in numbers:  # a repeated point gets a line of its own: it too arrived
            numbers = newest[at] = {}
            lines.append({"s": step, "t": at[1], "m": numbers})
        numbers[key] = value
    write_http_points(lab, run_id, lines)
    lab.metrics_arrived(run_id)
    return len(points)


def read(
    lab: Lab, run_id: str, keys: Sequence[str] | None, max_points: int, x: str, source: str | None
) -> dict[str, Any]:
    """One series a key, thinned with extremes kept; without keys, all of them."""
    run_verbs.get(lab, run_id)
    found = metrics.series_of(lab.db.reader(), run_id)
    chosen = [s for s in found if s.source == source] if source else metrics.preferred(found)
    wanted = [series for series in chosen if keys is None or series.key in keys]
    return {
        "run_id": run_id,
        "keys": sorted({series.key for series in found}),
        "series": [_shown(lab, series, max_points, x) for series in wanted],
    }


def _shown(lab: Lab, series: Series, max_points: int, x: str) -> dict[str, Any]:
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
    return shown


def compare(lab: Lab, run_ids: Sequence[str], key: str, max_points: int) -> dict[str, Any]:
    """One metric over several runs, and its mean ± std over runs that differ only in their seed."""
    if not run_ids or len(run_ids) > MAX_RUNS:
        raise Invalid(f"Name between 1 and {MAX_RUNS} runs.", hint="run_ids=run-…,run-…")
    found = {run_id: _points(lab, run_id, key, max_points) for run_id in run_ids}
    if not any(len(points) for points in found.values()):
        raise NotFound(f"None of these runs has a metric {key!r}.", hint="See GET /runs/{id}/metrics for the keys.")
    runs = {run_id: run_verbs.get(lab, run_id) for run_id in run_ids}
    return {
        "key": key,
        "runs": [_compared(runs[run_id], points) for run_id, points in found.items()],
        "groups": [_group(key, [found[i] for i in ids], ids) for key, ids in _same_but_for_seed(runs.values())],
    }


def _points(lab: Lab, run_id: str, key: str, max_points: int) -> Points:
    run_verbs.get(lab, run_id)
    found = metrics.preferred([s for s in metrics.series_of(lab.db.reader(), run_id) if s.key == key])
    return metrics.read(lab.db.reader(), found[0], max_points, with_times=False) if found else Points.empty()


def _compared(run: Run, points: Points) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "name": run.name,
        "params": run.params,
        "seed": run.seed,
        "steps": points.steps.tolist(),
        "values": [as_json(value) for value in points.values],
    }


def _same_but_for_seed(runs: Iterable[Run]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for run in runs:
        config = {name: value for name, value in run.params.items() if name != "seed"}
        groups.setdefault(json.dumps(config, sort_keys=True), []).append(run.id)
    return list(groups.items())


def _group(config: str, members: list[Points], run_ids: list[str]) -> dict[str, Any]:
    """Every run's last value up to each step of the first, so that runs of unequal pace can be averaged."""
    present = [points for points in members if len(points)]
    grid: array[int] = max((points.steps for points in present), key=len, default=array("q"))
    columns = [[_value_at(points, step) for points in present] for step in grid]
    spread = mean_and_spread(columns)
    return {
        "params": json.loads(config),
        "run_ids": run_ids,
        "n": len(present),
        "steps": grid.tolist(),
        "mean": [as_json(mean) for mean, _, _ in spread],
        "std": [std for _, std, _ in spread],
    }


def _value_at(points: Points, step: int) -> float:
    position = bisect_right(points.steps, step) - 1
    return points.values[position] if position >= 0 else float("nan")


def artifacts(lab: Lab, run_id: str) -> list[dict[str, Any]]:
    run_verbs.get(lab, run_id)
    rows = lab.db.reader().execute(METRICS["artifacts"], {"run_id": run_id})
    names = ("key", "step", "kind", "path", "caption", "time")
    return [dict(zip(names, row, strict=True)) for row in rows]
