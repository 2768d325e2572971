"""The numbers of a plan, from the records of its runs: never from what generated code says of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.run import Run, RunStatus
from labwright.domain.search.configurations import config_hash
from labwright.domain.search.results import ConfigurationResult, ranked
from labwright.planning.runs.counted import as_planned, counted_runs, decisive_values
from labwright.planning.runs.last_words import last_words
from labwright.workflow import Experiment, Metric, RunResult

_WORDS = 3  # lines of a failed run that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    run: Run
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one experiment came to."""

    step: str
    sweep_ids: list[str]  # those whose runs count; the newest last
    metric: Metric
    grid: Mapping[str, list[Any]]
    runs: list[Run]
    values: dict[str, float]  # of the deciding metric, by run; finished runs and finite numbers only
    configurations: list[ConfigurationResult]  # best first
    baseline: ConfigurationResult | None
    failed: list[FailedRun] = field(default_factory=list)

    @property
    def goal(self) -> str:
        return "max" if self.metric.direction == "maximize" else "min"

    @property
    def best(self) -> ConfigurationResult | None:
        first = self.configurations[0] if self.configurations else None
        return first if first is not None and first.mean is not None else None

    def of_metric(self, name: str, configuration: ConfigurationResult) -> ConfigurationResult:
        """The same configuration, measured by another metric."""
        ids = set(configuration.run_ids)
        found = ConfigurationResult(label=configuration.label, trial=configuration.trial, params=configuration.params)
        for run in self.runs:
            if run.id in ids:
                found.add(run.id, run.status, run.seed, run.ended_at, last_value(run, name))
        found.settle()
        return found


def last_value(run: Run, name: str) -> float | None:
    value = run.summary.get(name, {}).get("last")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def findings_of(lab: Lab, carriers: Mapping[str, list[str]], result: RunResult) -> list[Findings]:
    """One for each experiment of which a sweep was made, in the order of the workflow. By step: its sweeps."""
    steps = [step for step in result.workflow.steps if isinstance(step.work, Experiment)]
    return [_findings(lab, step.id, carriers[step.id], step.work) for step in steps if step.id in carriers]


def _findings(lab: Lab, step: str, sweep_ids: list[str], experiment: Experiment) -> Findings:
    metric = experiment.metric
    assert metric is not None, "validation refuses an experiment without a metric"
    counted = as_planned(counted_runs(lab, sweep_ids), experiment)
    logged = decisive_values(lab, sweep_ids, metric.name)
    values = {
        run.id: logged[run.id]
        for run in counted
        if run.status is RunStatus.FINISHED and math.isfinite(logged.get(run.id, math.nan))
    }
    configurations = _configurations(counted, values)
    label = None if experiment.baseline is None else config_hash(experiment.baseline)
    return Findings(
        step=step,
        sweep_ids=[one for one in sweep_ids if one in {run.sweep_id for run in counted}],
        metric=metric,
        grid={name: list(given) for name, given in experiment.grid.items()},
        runs=counted,
        values=values,
        configurations=ranked(configurations, "max" if metric.direction == "maximize" else "min"),
        baseline=next((found for found in configurations if found.label == label), None),
        failed=[FailedRun(run=run, said=_why(lab, run, metric.name)) for run in counted if run.id not in values],
    )


def _configurations(counted: list[Run], values: dict[str, float]) -> list[ConfigurationResult]:
    found: dict[str, ConfigurationResult] = {}
    for run in counted:
        label = run.config_hash or config_hash(run.params)
        known = found.setdefault(label, ConfigurationResult(label=label, trial=run.trial, params=run.params))
        known.add(run.id, run.status, run.seed, run.ended_at, values.get(run.id))
    for configuration in found.values():
        configuration.settle()
    return list(found.values())


def _why(lab: Lab, run: Run, metric: str) -> str:
    if run.status is RunStatus.FINISHED:
        return f"it finished without a usable value of {metric}"
    return last_words(lab, run, _WORDS) or run.error or run.status_reason
