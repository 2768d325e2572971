"""Epochs as an axis: a run's own metric `epoch` says which one each step belongs to."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from labwright.compute.lab import Lab
from labwright.domain.metric import Points
from labwright.store import metrics
from labwright.store.metrics import Series

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
