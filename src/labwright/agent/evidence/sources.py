"""Where numbers come from: one function per kind of evidence, called when it is collected and when it is checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from labwright.agent.evidence.evidence import Reading
from labwright.compute.lab import Lab
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.metrics.points import deviation_of, listed, mean_of
from labwright.domain.run import Run
from labwright.domain.sweep import ENDED, SweepStatus
from labwright.services import cluster
from labwright.services.runs import logs
from labwright.services.runs import verbs as runs
from labwright.services.sweeps import results as sweep_views
from labwright.store import metrics, sweeps
from labwright.store import runs as stored_runs

LOOK_FOR_LESS = ("loss", "error", "err", "perplexity", "ppl", "rmse", "mse", "mae", "wer", "cer", "nll", "latency")
_GOALS = {"min": 1, "max": -1}
_PLACES = 10


def look(lab: Lab, kind: str, source: Mapping[str, Any]) -> Reading:
    return _KINDS[kind](lab, **source)


def _run(lab: Lab, run_id: str) -> Reading:
    run = runs.get(lab, run_id)
    facts = {name: getattr(run, name) for name in ("exit_code", "signal", "attempt", "seed", "gpus")}
    values = {**facts, **run.usage, **{f"params.{name}": value for name, value in run.params.items()}}
    moments = (run.created_at, run.started_at, run.ended_at)
    texts = tuple(text for text in (*moments, run.command, run.error, run.status_reason) if text)
    return Reading(values=_numbers(values), texts=texts, about=_names(run), settled=run.is_terminal)


def _metric(lab: Lab, run_id: str, key: str) -> Reading:
    run = runs.get(lab, run_id)
    known = _statistics(lab, run, key)
    values = {
        "last": known.last,
        "min": known.low,
        "max": known.high,
        "mean": known.mean,
        "count": known.count,
        "last_step": known.last_step,
    }
    return Reading(values=_numbers(values), about=_names(run), key=key, settled=run.is_terminal)


def _group(lab: Lab, run_ids: Sequence[str], key: str, use: str) -> Reading:
    """Mean and deviation over several runs, with one value of each."""
    found = [runs.get(lab, run_id) for run_id in run_ids]
    values = [_value(lab, run, key, use) for run in found]
    names = tuple(name for run in found for name in _names(run))
    settled = all(run.is_terminal for run in found)
    return Reading(values=_spread(values), about=names, key=key, settled=settled)


def _difference(lab: Lab, first: Sequence[str], second: Sequence[str], key: str, use: str, goal: str) -> Reading:
    """The difference of two runs, or of the means of two groups: the second minus the first."""
    one, other = _group(lab, first, key, use), _group(lab, second, key, use)
    a, b = one.values["mean"], other.values["mean"]
    values = {"of_first": a, "of_second": b, "difference": b - a}
    if a:
        values |= {"percent": (b - a) / abs(a) * 100, "ratio": b / a}
    values |= {
        f"std_{which}": seen.values["std"]
        for which, seen in (("first", one), ("second", other))
        if "std" in seen.values
    }
    first_leads = _GOALS[goal] * a <= _GOALS[goal] * b
    order = (*first, *second) if first_leads else (*second, *first)
    settled = one.settled and other.settled
    return Reading(values=values, about=(*one.about, *other.about), key=key, order=order, goal=goal, settled=settled)


def _ranking(lab: Lab, run_ids: Sequence[str], key: str, use: str, goal: str) -> Reading:
    found = [runs.get(lab, run_id) for run_id in run_ids]
    values = {run.id: _value(lab, run, key, use) for run in found}
    order = tuple(sorted(values, key=lambda run_id: _GOALS[goal] * values[run_id]))
    places = {f"place_{place}": values[run_id] for place, run_id in enumerate(order, 1)}
    facts = {**places, "lead": abs(values[order[0]] - values[order[1]])} if len(order) > 1 else places
    names = tuple(name for run in found for name in _names(run))
    settled = all(run.is_terminal for run in found)
    return Reading(
        values=_numbers({**facts, "runs": len(order)}), about=names, key=key, order=order, goal=goal, settled=settled
    )


def _best(lab: Lab, key: str, goal: str) -> Reading:
    """The best of all finished runs, by their last value."""
    values = metrics.last_of_finished(lab.db.reader(), key)
    order = tuple(sorted(values, key=lambda run_id: _GOALS[goal] * values[run_id])[:_PLACES])
    places = {f"place_{place}": values[run_id] for place, run_id in enumerate(order, 1)}
    names = tuple(name for run_id in order for name in _names(runs.get(lab, run_id)))
    return Reading(values={**places, "runs": len(values)}, about=names, key=key, order=order, goal=goal, settled=False)


def _sweep(lab: Lab, sweep_id: str) -> Reading:
    sweep = sweep_views.get(lab, sweep_id)
    best = sweep["best"] or {}
    values = {**sweep["progress"], **{name: best.get(name) for name in ("mean", "std", "n", "trial")}}
    values |= {f"params.{name}": value for name, value in best.get("params", {}).items()}
    about = (sweep["id"], sweep["name"], *([best["run_id"]] if best else []))
    return Reading(
        values=_numbers(values),
        about=about,
        key=(sweep["metric"] or {}).get("key", ""),
        order=(best["run_id"],) if best else (),
        settled=SweepStatus(sweep["status"]) in ENDED,
    )


def _configuration(lab: Lab, sweep_id: str, config_hash: str, key: str, goal: str) -> Reading:
    """One configuration of a sweep: its mean over seeds, and its place among the others."""
    found = sweep_views.results(lab, sweep_id, key, goal, limit=10_000)
    ranked = found["configurations"]
    place = next((i for i, c in enumerate(ranked, 1) if c["config_hash"] == config_hash), 0)
    if not place:
        raise NotFound(f"Sweep {sweep_id} has no configuration {config_hash}.")
    chosen = ranked[place - 1]
    values = {"place": place, "of": found["total"], **{name: chosen[name] for name in ("mean", "std", "n")}}
    values |= {f"params.{name}": value for name, value in chosen["params"].items()}
    return Reading(
        values=_numbers(values),
        about=(sweep_id, *chosen["run_ids"]),
        key=key,
        order=tuple(configuration["run_ids"][0] for configuration in ranked),
        goal=goal,
        settled=sweeps.get(lab.db.reader(), sweep_id).status in ENDED,
    )


def _runs(lab: Lab, filters: Mapping[str, Any]) -> Reading:
    """The number of runs of each status."""
    if filters:
        wanted = stored_runs.Filter(**{**filters, "status": tuple(filters.get("status", ()))})
        found, more = stored_runs.page(lab.db.reader(), wanted, 1000, None)
        return Reading(values={} if more else {"count": len(found)}, settled=False)
    counts: dict[str, float] = dict(stored_runs.count_by_status(lab.db.reader()))
    return Reading(values={**counts, "total": sum(counts.values())}, settled=False)


def _cluster(lab: Lab) -> Reading:
    shown = cluster.show(lab)["cluster"]
    names = ("gpu_count", "cpu_count", "memory_total_mb", "node_count")
    values = {**{name: shown[name] for name in names}, "max_parallel": shown["recommended"]["max_parallel"]}
    for gpu in shown["gpus"]:
        values |= {f"gpu{gpu['index']}.{name}": gpu[name] for name in _OF_A_GPU}
    return Reading(values=_numbers(values), texts=tuple(gpu["name"] for gpu in shown["gpus"]), settled=False)


_OF_A_GPU = ("memory_total_mb", "memory_used_mb", "utilization")


def _log(lab: Lab, run_id: str, grep: str = "") -> Reading:
    run = runs.get(lab, run_id)
    if grep:
        shown = [logs.grep(lab, run, grep)["content"]]
        return Reading(texts=tuple(shown), about=_names(run), settled=run.is_terminal)
    digest = logs.digest(lab, run)
    words = [digest["error"], digest["first_error"], digest["status_reason"], *digest["last_lines"]]
    words += digest["gpu_contention"]
    values = {name: digest[name] for name in ("exit_code", "signal", "total_size")}
    texts = tuple(str(text) for text in words if text)
    return Reading(values=_numbers(values), texts=texts, about=_names(run), settled=run.is_terminal)


def _text(lab: Lab, what: str, shown: str) -> Reading:  # noqa: ARG001
    """The text of a file or a plan as it was shown. The log has it, so it cannot change."""
    return Reading(texts=(shown,), about=(what,))


_KINDS: dict[str, Callable[..., Reading]] = {
    "run": _run,
    "metric": _metric,
    "group": _group,
    "difference": _difference,
    "ranking": _ranking,
    "best": _best,
    "sweep": _sweep,
    "configuration": _configuration,
    "runs": _runs,
    "cluster": _cluster,
    "log": _log,
    "text": _text,
}


def goal_of(key: str) -> str:
    """Guess from a metric's name whether less or more is better. A tool call can say otherwise."""
    words = key.lower().replace("/", "_").replace("-", "_").split("_")
    return "min" if any(word.startswith(LOOK_FOR_LESS) for word in words) else "max"


def _statistics(lab: Lab, run: Run, key: str) -> Any:
    found = [series for series in metrics.series_of(lab.db.reader(), run.id) if series.key == key]
    if not found:
        known = listed({series.key for series in metrics.series_of(lab.db.reader(), run.id)})
        raise NotFound(f"Run {run.id} has no metric {key!r}.", hint=f"It has: {known or 'none'}.")
    return metrics.preferred(found)[0].statistics


def _value(lab: Lab, run: Run, key: str, use: str) -> float:
    known = _statistics(lab, run, key)
    value = {"last": known.last, "min": known.low, "max": known.high, "mean": known.mean}[use]
    if value is None or not math.isfinite(value):
        raise Invalid(f"The {use} value of {key} in run {run.id} is {value}; it cannot be compared.")
    return float(value)


def _spread(values: Sequence[float]) -> dict[str, float | int]:
    mean = mean_of(values)
    found: dict[str, float | int] = {"mean": mean, "n": len(values), "min": min(values), "max": max(values)}
    if len(values) > 1:
        found["std"] = deviation_of(values, mean)
    return found


def _names(run: Run) -> tuple[str, ...]:
    return run.id, run.name


def _numbers(facts: Mapping[str, Any]) -> dict[str, float | int]:
    return dict(_only_numbers(facts))


def _only_numbers(facts: Mapping[str, Any]) -> Iterator[tuple[str, float | int]]:
    for name, value in facts.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield name, value
