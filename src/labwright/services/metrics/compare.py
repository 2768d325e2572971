"""One metric over several runs, by step, by time since each run's start or by epoch; over seeds, mean and deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.clock import epoch_seconds
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.metrics.points import Points, as_json, mean_and_spread
from labwright.domain.metrics.series import WholeSeries
from labwright.domain.run import Run
from labwright.domain.search.configurations import same_but_for_seed, without_seed
from labwright.services.metrics.verbs import KEYS, epochs_at
from labwright.services.runs import verbs as run_verbs
from labwright.store import metrics
from labwright.store.metrics import Series

MAX_RUNS = 200
AXES = {"step": "steps", "time": "times", "epoch": "epochs"}  # and how each is called in the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One run's points in order of `xs`."""

    steps: Sequence[int]
    xs: Sequence[float]
    values: Sequence[float]


def compare(
    lab: Lab, run_ids: Sequence[str], key: str, max_points: int, x: str, *, grouped: bool = True
) -> dict[str, Any]:
    """One metric over several runs, and its mean ± std over runs that differ only in their seed.

    The mean is over whole series; who draws only curves leaves it out and is answered sooner.
    """
    if not run_ids or len(run_ids) > MAX_RUNS:
        raise Invalid(f"Name between 1 and {MAX_RUNS} runs.", hint="run_ids=run-…,run-…")
    runs = {run_id: run_verbs.get(lab, run_id) for run_id in run_ids}
    curves = {run_id: _curve(lab, run, key, max_points, x) for run_id, run in runs.items()}
    if not any(curve.values for curve in curves.values()):
        raise _nothing_to_show(key, x)
    groups = same_but_for_seed(runs.values()) if grouped else []
    return {
        "key": key,
        "x": x,
        "runs": [_compared(runs[run_id], curve, x) for run_id, curve in curves.items()],
        "groups": [_group(lab, members, key, max_points, x) for members in groups],
    }


def mean_curve(lab: Lab, run_ids: Sequence[str], key: str, max_points: int) -> dict[str, Any]:
    """The mean ± std by step over runs of which the caller knows that they differ only in their seed."""
    return _group(lab, [run_verbs.get(lab, run_id) for run_id in run_ids], key, max_points, "step")


def _nothing_to_show(key: str, x: str) -> NotFound:
    if x == "epoch":
        words = f"None of these runs has a metric {key!r} with epochs."
        return NotFound(words, hint=f"A run's metric {' or '.join(KEYS)} tells its epochs; without one, use x=step.")
    return NotFound(f"None of these runs has a metric {key!r}.", hint="See GET /runs/{id}/metrics for the keys.")


def _curve(lab: Lab, run: Run, key: str, max_points: int, x: str) -> Curve:
    of_run = metrics.series_of(lab.db.reader(), run.id)
    found = _series(of_run, key)
    if found is None:
        return Curve(steps=(), xs=(), values=())
    points = metrics.read(lab.db.reader(), found, max_points, with_times=x == "time")
    if x == "time":
        return _ascending(points, _since_start(run, points))
    if x == "epoch":
        return _ascending(points, epochs_at(lab, of_run, points.steps))
    return Curve(steps=points.steps, xs=points.steps, values=points.values)


def _series(of_run: list[Series], key: str) -> Series | None:
    return next(iter(metrics.preferred([series for series in of_run if series.key == key])), None)


def _since_start(run: Run, points: Points) -> list[float]:
    """Of a run that never started here, since its first point."""
    start = epoch_seconds(run.started_at) if run.started_at else min(points.times, default=0.0)
    return [moment - start for moment in points.times]


def _ascending(points: Points, xs: Sequence[float]) -> Curve:
    """In order of the axis: clocks are set back, and a step may come late. A point without a place has no epoch yet."""
    if all(a <= b for a, b in pairwise(xs)) and not any(map(math.isnan, xs)):
        return Curve(steps=points.steps, xs=xs, values=points.values)
    order = sorted((i for i, x in enumerate(xs) if not math.isnan(x)), key=xs.__getitem__)
    return Curve(
        steps=[points.steps[i] for i in order], xs=[xs[i] for i in order], values=[points.values[i] for i in order]
    )


def _compared(run: Run, curve: Curve, x: str) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "name": run.name,
        "params": run.params,
        "seed": run.seed,
        "steps": list(curve.steps),
        AXES[x]: list(curve.xs),
        "values": [as_json(value) for value in curve.values],
    }


def _group(lab: Lab, members: list[Run], key: str, max_points: int, x: str) -> dict[str, Any]:
    """Of all their points, not of those that are drawn: these are each run's extremes, and at different places."""
    wholes = [whole for run in members if (whole := _whole(lab, run, key, x))]
    places = max(wholes, key=len).places(max(2, max_points)) if wholes else []
    columns = zip(*(whole.values_at(places) for whole in wholes), strict=True)
    spread = mean_and_spread(columns)
    return {
        "params": without_seed(members[0].params),
        "run_ids": [run.id for run in members],
        "n": len(wholes),
        AXES[x]: places,
        "mean": [as_json(mean) for mean, _, _ in spread],
        "std": [as_json(std) for _, std, _ in spread],
        "counts": [count for _, _, count in spread],
    }


def _whole(lab: Lab, run: Run, key: str, x: str) -> WholeSeries | None:
    found = _series(metrics.series_of(lab.db.reader(), run.id), key)
    if found is None or not found.statistics.count:
        return None
    if x == "step":
        return metrics.read_whole(lab.db.reader(), found)
    curve = _curve(lab, run, key, found.statistics.count, x)
    whole = WholeSeries()
    if curve.xs:
        whole.add_points(curve.xs, curve.values)
    return whole if len(whole) else None
