"""An experiment as a sweep: exactly the runs that it declares, each with its own command; then what they came to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.approved_code import CODE_CHANGED
from labwright.domain.errors import NotFound
from labwright.domain.ids import SWEEP
from labwright.domain.run import Run, RunStatus
from labwright.domain.search.configurations import SEED, config_hash
from labwright.domain.sweep import ENDED, Sweep, SweepMethod, SweepStatus
from labwright.planning.run_mode.execution import Execution, StepFailed, plain
from labwright.planning.runs.carriers import note_carrier
from labwright.planning.runs.counted import as_planned, counted_runs, decisive_values
from labwright.planning.runs.last_words import last_words
from labwright.services.runs.new_run import NewRun
from labwright.services.sweeps import verbs as sweep_verbs
from labwright.services.sweeps.new_sweep import ListedRun, NewSweep
from labwright.store import sweeps
from labwright.workflow import Configuration, Experiment, ExperimentResult, ExperimentRun, Sealed, Step

_MACHINE = "system/"  # what the monitor samples, not what the command reports
_NAME_LENGTH = 120


def run_experiment(execution: Execution, step: Step, inputs: dict[str, Sealed]) -> ExperimentResult:
    experiment = step.work
    assert isinstance(experiment, Experiment)
    execution.check_approved()
    values = {name: plain(value.encoded) for name, value in inputs.items()}
    earlier = [id for id in execution.earlier_ids(SWEEP, step.id, inputs) if _is_there(execution.lab, id)]
    for sweep_id in earlier:  # somebody may be having its failed runs tried again
        execution.wait_for(_Watch(execution, step.id, sweep_id).ended)
    listed = _not_done(execution.lab, earlier, listed_runs(experiment, values))
    if not listed:
        note_carrier(execution.handle, step.id, earlier[-1], beside=earlier[:-1])
        return _some_result(execution.lab, earlier, experiment)
    wanted = _wanted(execution, step, execution.id_for(SWEEP, step.id, inputs), listed)
    made = sweep_verbs.create(execution.lab, wanted, execution.actor)
    note_carrier(execution.handle, step.id, made.id, beside=earlier)
    execution.tell("launched", step=step.id, sweep_id=made.id)
    ended = execution.wait_for(_Watch(execution, step.id, made.id).ended)
    if ended.status is SweepStatus.STOPPED:
        raise StepFailed(f"{ended.id} was stopped before all of its runs had ended")
    _check_all_began(execution.lab, [*earlier, made.id])
    return _some_result(execution.lab, [*earlier, made.id], experiment)


def _some_result(lab: Lab, sweep_ids: Sequence[str], experiment: Experiment) -> ExperimentResult:
    """Where no run has a value the fault lies in the runs: said here, and not by the steps that would use them."""
    result = result_of(lab, sweep_ids, experiment)
    metric = result["metric"]
    if any(run["status"] == RunStatus.FINISHED and metric in run["metrics"] for run in result["runs"]):
        return result
    raise StepFailed(f"no run finished with {metric}{_first_words(lab, sweep_ids)}")


def _first_words(lab: Lab, sweep_ids: Sequence[str]) -> str:
    """Of one run, for all: what keeps every one from its end is most often the same."""
    for run in counted_runs(lab, sweep_ids):
        return f". {run.id} {run.status}: {last_words(lab, run) or run.error or run.status_reason}"
    return ""


def _check_all_began(lab: Lab, sweep_ids: Sequence[str]) -> None:
    """A run that found other code than was approved is no result: it is for the next execution to do."""
    refused = [run for run in counted_runs(lab, sweep_ids) if run.status_reason == CODE_CHANGED]
    if refused:
        raise StepFailed(f"{len(refused)} run(s) found other code. {refused[0].id}: {refused[0].error}")


def _is_there(lab: Lab, sweep_id: str) -> bool:
    try:
        sweeps.get(lab.db.reader(), sweep_id)
    except NotFound:
        return False
    return True


def _not_done(lab: Lab, earlier: Sequence[str], listed: tuple[ListedRun, ...]) -> tuple[ListedRun, ...]:
    """Without what finished in a sweep that was stopped: it has the same code and the same command."""
    finished = [run for run in counted_runs(lab, earlier) if run.status is RunStatus.FINISHED]
    done = {(run.config_hash, run.seed) for run in finished}
    return tuple(run for run in listed if (config_hash(run.params), run.seed) not in done)


def _wanted(execution: Execution, step: Step, sweep_id: str, listed: tuple[ListedRun, ...]) -> NewSweep:
    experiment: Experiment = step.work
    resources = experiment.resources
    return NewSweep(
        id=sweep_id,
        name=f"{execution.title} · {experiment.name}"[:_NAME_LENGTH],
        goal=execution.title,
        base_command=experiment.command,
        parameters={name: list(given) for name, given in experiment.grid.items()},
        method=SweepMethod.GRID,
        metric=metric_of(experiment),
        seeds=tuple(experiment.seeds),
        max_runs=experiment.max_runs,
        listed=listed,
        auto_start=True,
        common=NewRun(
            command=experiment.command,
            plan_id=execution.handle.id,
            tags=("plan", step.id),
            workdir=execution.scan.folder,
            approved=execution.handoff.digest,
            gpus=resources.gpus or None,
            cpus=resources.cpus,
            memory_mb=None if resources.memory_gb is None else int(resources.memory_gb * 1024),
            time_limit_seconds=resources.time_limit_seconds,
        ),
    )


def metric_of(experiment: Experiment) -> dict[str, Any] | None:
    metric = experiment.metric
    if metric is None:
        return None
    return {"key": metric.name, "goal": "max" if metric.direction == "maximize" else "min", "use": "last"}


def listed_runs(experiment: Experiment, values: Mapping[str, Any]) -> tuple[ListedRun, ...]:
    """As the experiment itself has them: the grid, its seeds, and the baseline where the grid does not hold it."""
    return tuple(
        ListedRun(params=dict(one.params), seed=_seed_of(one), command=experiment.command_for(one, values))
        for one in experiment.configurations()
    )


def _seed_of(one: Configuration) -> int | None:
    """A grid of nothing but seeds has it among its parameters."""
    seed = one.params.get(SEED) if one.seed is None else one.seed
    return seed if type(seed) is int else None


class _Watch:
    """Looks for the end of a sweep. A paused one waits for somebody's answer, and so do we; that is told once."""

    def __init__(self, execution: Execution, step_id: str, sweep_id: str) -> None:
        self._execution, self._step_id, self._sweep_id = execution, step_id, sweep_id
        self._told = ""

    def ended(self) -> Sweep | None:
        found = sweeps.get(self._execution.lab.db.reader(), self._sweep_id)
        if found.status is SweepStatus.PAUSED and found.status_reason != self._told:
            self._execution.tell("paused", step=self._step_id, sweep_id=found.id, reason=found.status_reason)
        if found.status is not SweepStatus.PAUSED and self._told:
            self._execution.tell("resumed", step=self._step_id, sweep_id=found.id)
        self._told = found.status_reason if found.status is SweepStatus.PAUSED else ""
        return found if found.status in ENDED and not self._is_ending(found) else None

    def _is_ending(self, sweep: Sweep) -> bool:
        """The runs of a stopped sweep are given some time to end; how they did is for the report to say."""
        reader = self._execution.lab.db.reader()
        return sweep.status is SweepStatus.STOPPED and bool(sweeps.unended_runs(reader, sweep.id))


def result_of(lab: Lab, sweep_ids: Sequence[str], experiment: Experiment) -> ExperimentResult:
    """Runs that failed are in it with their status: one of them spoils its own configuration only."""
    metric = experiment.metric
    assert metric is not None, "validation refuses an experiment without a metric"
    decisive = decisive_values(lab, sweep_ids, metric.name)
    counted = as_planned(counted_runs(lab, sweep_ids), experiment)
    found = [_as_result(run, metric.name, decisive.get(run.id)) for run in counted]
    return {"runs": found, "metric": metric.name, "direction": metric.direction}


def _as_result(run: Run, metric: str, decisive: float | None) -> ExperimentRun:
    reported = {key: known["last"] for key, known in run.summary.items() if not key.startswith(_MACHINE)}
    if decisive is not None:
        reported[metric] = decisive
    metrics = {key: float(value) for key, value in reported.items() if _is_finite(value)}
    return {"run_id": run.id, "params": run.params, "seed": run.seed, "status": str(run.status), "metrics": metrics}


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
