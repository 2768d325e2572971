"""Compare one metric over several runs, by step, time or epoch, with mean and deviation over seeds."""

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
from labwright.services.metrics.verbs import EPOCH_KEYS, epochs_at
from labwright.services.runs import verbs as run_verbs
from labwright.store import metrics
from labwright.store.metrics import Series

MAX_RUNS = 200
AXES = {"step": "steps", "time": "times", "epoch": "epochs"}  # axis: name of its values in the response


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCurve:
    """One run's points in order of `xs`."""

    steps: Sequence[int]
    xs: Sequence[float]
    values: Sequence[float]


def compare(
    lab: Lab, run_ids: Sequence[str], key: str, max_points: int, x: str, *, grouped: bool = True
) -> dict[str, Any]:
    """Return the curve of each run, and mean ± std over runs that differ only in their seed.

    The mean reads whole series. Without `grouped`, it is left out and the response is faster.
    """
    if not run_ids or len(run_ids) > MAX_RUNS:
        raise Invalid(f"Compare takes 1 to {MAX_RUNS} runs.", hint="Send run_ids=run-…,run-…")
    runs = {run_id: run_verbs.get(lab, run_id) for run_id in run_ids}
    curves = {run_id: _curve(lab, run, key, max_points, x) for run_id, run in runs.items()}
    if not any(curve.values for curve in curves.values()):
        if x == "epoch":
            message = f"None of these runs has a metric {key!r} with epochs."
            raise NotFound(message, hint=f"Log a metric {' or '.join(EPOCH_KEYS)}, or use x=step.")
        raise NotFound(f"None of these runs has a metric {key!r}.", hint="See GET /runs/{id}/metrics for the keys.")
    groups = same_but_for_seed(runs.values()) if grouped else []
    return {
        "key": key,
        "x": x,
        "runs": [_compared(runs[run_id], curve, x) for run_id, curve in curves.items()],
        "groups": [_group(lab, members, key, max_points, x) for members in groups],
    }


def mean_curve(lab: Lab, run_ids: Sequence[str], key: str, max_points: int) -> dict[str, Any]:
    """Return mean ± std by step. The caller knows that the runs differ only in their seed."""
    return _group(lab, [run_verbs.get(lab, run_id) for run_id in run_ids], key, max_points, "step")


def _curve(lab: Lab, run: Run, key: str, max_points: int, x: str) -> RunCurve:
    of_run = metrics.series_of(lab.db.reader(), run.id)
    found = _series(of_run, key)
    if found is None:
        return RunCurve(steps=(), xs=(), values=())
    points = metrics.read(lab.db.reader(), found, max_points, with_times=x == "time")
    if x == "time":
        start = epoch_seconds(run.started_at) if run.started_at else min(points.times, default=0.0)
        return _ascending(points, [moment - start for moment in points.times])
    if x == "epoch":
        return _ascending(points, epochs_at(lab, of_run, points.steps))
    return RunCurve(steps=points.steps, xs=points.steps, values=points.values)


def _series(of_run: list[Series], key: str) -> Series | None:
    return next(iter(metrics.preferred([series for series in of_run if series.key == key])), None)


def _ascending(points: Points, xs: Sequence[float]) -> RunCurve:
    """Return the points in order of the axis: clocks and steps may go back. Points without an epoch are dropped."""
    if all(a <= b for a, b in pairwise(xs)) and not any(map(math.isnan, xs)):
        return RunCurve(steps=points.steps, xs=xs, values=points.values)
    order = sorted((i for i, x in enumerate(xs) if not math.isnan(x)), key=xs.__getitem__)
    return RunCurve(
        steps=[points.steps[i] for i in order], xs=[xs[i] for i in order], values=[points.values[i] for i in order]
    )


def _compared(run: Run, curve: RunCurve, x: str) -> dict[str, Any]:
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
    """Return mean ± std over all points. Thinned points are the extremes of each run, at different places."""
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
