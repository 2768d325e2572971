"""The results of a sweep: progress, best configuration, table, parameter importance and confidence."""

from __future__ import annotations

import csv
import io
import json
import math
import sqlite3
from collections.abc import Iterator
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.command_line import as_text
from labwright.domain.errors import Invalid
from labwright.domain.run import RunStatus
from labwright.domain.search.configurations import SEED
from labwright.domain.search.results import (
    IMPORTANCE_METHOD,
    LEAST_CONFIGURATIONS,
    ConfigurationResult,
    best_so_far,
    importance,
    judge_lead,
    ranked,
)
from labwright.domain.sweep import Sweep, SweepMethod
from labwright.store import sweeps

Metric = dict[str, Any]


def view(lab: Lab, sweep: Sweep) -> dict[str, Any]:
    """Return the sweep with its progress and its current best configuration."""
    connection = lab.db.reader()
    counts = sweeps.count_by_status(connection, sweep.id)
    best = sweep.best if sweep.best_at == counts[RunStatus.FINISHED] else best_of(connection, sweep)
    failed = counts.get(RunStatus.FAILED, 0) + counts.get(RunStatus.LOST, 0)
    to_retry = sweeps.count_to_retry(connection, sweep.id) if failed else 0
    return {**sweep.to_dict(), "progress": _progress(counts), "best": best, "to_retry": to_retry}


def _progress(counts: dict[str, int]) -> dict[str, int]:
    every = {status.value: counts.get(status, 0) for status in RunStatus}
    return {"total": sum(every.values()), **every}


def get(lab: Lab, sweep_id: str) -> dict[str, Any]:
    return view(lab, sweeps.get(lab.db.reader(), sweep_id))


def page(lab: Lab, limit: int, before: int | None) -> tuple[list[dict[str, Any]], int | None]:
    """Return sweeps with the stored best configuration: a list does not read every run of every sweep."""
    found, more = sweeps.page(lab.db.reader(), limit, before)
    counts = sweeps.counts_of_all(lab.db.reader())
    return [{**sweep.to_dict(), "progress": _progress(counts.get(sweep.id, {}))} for sweep in found], more


def outcomes(connection: sqlite3.Connection, sweep: Sweep) -> tuple[int, int]:
    """Return how many runs failed and how many succeeded. In an adaptive sweep, success requires a metric value."""
    counts = sweeps.count_by_status(connection, sweep.id)
    failed, finished = counts[RunStatus.FAILED] + counts[RunStatus.LOST], counts[RunStatus.FINISHED]
    if sweep.method is not SweepMethod.ADAPTIVE or sweep.metric is None:
        return failed, finished
    values = sweeps.metric_values(connection, sweep.id, sweep.metric)
    valued = sum(1 for value in values.values() if math.isfinite(value))
    return failed + max(0, finished - valued), valued


def best_facts(connection: sqlite3.Connection, sweep: Sweep) -> dict[str, Any]:
    """Return the best for the sweep's record. The count is read first, so that it is never too high for the best."""
    finished = sweeps.count_by_status(connection, sweep.id)[RunStatus.FINISHED]
    return {"best_at": finished, "best": best_of(connection, sweep)}


def best_of(connection: sqlite3.Connection, sweep: Sweep) -> dict[str, Any] | None:
    if sweep.metric is None:
        return None
    first = ranked(configurations(connection, sweep, sweep.metric), sweep.metric["goal"])[:1]
    return _best(first[0]) if first and first[0].mean is not None else None


def _best(found: ConfigurationResult) -> dict[str, Any]:
    names = ("params", "mean", "std", "n", "trial")
    return {"run_id": found.run_ids[0], "config_hash": found.label, **{name: getattr(found, name) for name in names}}


def configurations(connection: sqlite3.Connection, sweep: Sweep, metric: Metric) -> list[ConfigurationResult]:
    """Return the runs grouped by configuration. Only finished runs have a value that counts."""
    values = sweeps.metric_values(connection, sweep.id, metric)
    found: dict[str, ConfigurationResult] = {}
    texts = []
    for row in sweeps.runs_of(connection, sweep.id):
        label = row.config_hash or row.params
        known = found.get(label)
        if known is None:
            known = found[label] = ConfigurationResult(label=label, trial=row.trial)
            texts.append(row.params)
        known.add(row.id, row.status, row.seed, row.ended_at, values.get(row.id))
    every = json.loads(f"[{','.join(texts)}]")  # one call is faster than thousands
    for configuration, params in zip(found.values(), every, strict=True):
        if configuration.trial is not None and sweep.parameters:
            configuration.params = {name: params[name] for name in sweep.parameters if name in params}
        else:  # a run that joined the sweep
            configuration.params = {name: value for name, value in params.items() if name != SEED}
        configuration.settle()
    return list(found.values())


def results(lab: Lab, sweep_id: str, key: str | None, goal: str | None, limit: int) -> dict[str, Any]:
    connection = lab.db.reader()
    sweep = sweeps.get(connection, sweep_id)
    metric = chosen_metric(connection, sweep, key, goal)
    found = ranked(configurations(connection, sweep, metric), metric["goal"])
    has_value = bool(found) and found[0].mean is not None
    verdict = judge_lead(found, metric["key"], () if has_value else sweeps.metric_keys(connection, sweep.id))
    valued = [configuration for configuration in found if configuration.mean is not None]
    shares = importance([c.params for c in valued], [c.mean for c in valued if c.mean is not None])
    too_few = f"This needs {LEAST_CONFIGURATIONS} configurations with a value. {len(valued)} have one."
    return {
        "sweep_id": sweep.id,
        "metric": metric,
        "total": len(found),
        "best": _best(found[0]) if has_value else None,
        "configurations": [configuration.to_dict() for configuration in found[:limit]],
        "importance": {
            "method": IMPORTANCE_METHOD,
            "parameters": shares or {},
            "note": too_few if shares is None else "",
        },
        "best_so_far": best_so_far(found, metric["goal"]),
        "verdict": {"kind": verdict.kind, "text": verdict.text},
    }


def chosen_metric(connection: sqlite3.Connection, sweep: Sweep, key: str | None, goal: str | None) -> Metric:
    """Return the requested metric, or the sweep's own."""
    if not key and sweep.metric is None:
        known = ", ".join(sweeps.metric_keys(connection, sweep.id)[:20]) or "none yet"
        raise Invalid(
            f"Sweep {sweep.id} has no metric.",
            hint=f"Choose one with key= and goal=min or goal=max. Its runs have logged: {known}.",
            field=("key",),
        )
    own = sweep.metric or {"goal": "min", "use": "last"}
    return {**own, "key": key or own["key"], "goal": goal or own["goal"]}


def export(lab: Lab, sweep_id: str, form: str, key: str | None, goal: str | None) -> Iterator[str]:
    """Return the table as lines, best configuration first. Errors are raised before the first line."""
    connection = lab.db.reader()
    sweep = sweeps.get(connection, sweep_id)
    metric = chosen_metric(connection, sweep, key, goal)
    found = ranked(configurations(connection, sweep, metric), metric["goal"])
    return _csv(found) if form == "csv" else (f"{json.dumps(c.to_dict(), ensure_ascii=False)}\n" for c in found)


def _csv(found: list[ConfigurationResult]) -> Iterator[str]:
    names = list(dict.fromkeys(name for configuration in found for name in configuration.params))
    trial, *others = (_unique_column(own, names) for own in ("trial", "mean", "std", "n", "config_hash", "run_ids"))
    yield _line([trial, *names, *others])
    for c in found:
        values = ["" if c.params.get(name) is None else as_text(c.params[name]) for name in names]
        yield _line([c.trial, *values, c.mean, c.std, c.n, c.label, " ".join(c.run_ids)])


def _unique_column(own: str, names: list[str]) -> str:
    """Return a column name that no parameter has, with the prefix `sweep.` if needed."""
    return own if own not in names else _unique_column(f"sweep.{own}", names)


def _line(cells: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
