"""What makes a workflow worth running: no stubs, no orphans, one writer an artifact, a metric somebody produces."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from labwright.workflow.experiments import DIRECTIONS, SEED, Experiment
from labwright.workflow.graph import Output, Step, Workflow
from labwright.workflow.reports import Finding
from labwright.workflow.stubs import why_stub
from labwright.workflow.tasks import Task


def check_plausibility(workflow: Workflow) -> Iterator[Finding]:
    yield from _check_orphans(workflow)
    yield from _check_writers(workflow)
    reasons: dict[int, str] = {}  # by task: one task may stand in a thousand steps
    for step in workflow.steps:
        if isinstance(step.work, Task):
            yield from _check_stub(step, step.work, reasons)
        elif isinstance(step.work, Experiment):
            yield from _check_experiment(step.id, step.work)


def _check_orphans(workflow: Workflow) -> Iterator[Finding]:
    used = {source for step in workflow.steps for source in step.waits_for()}
    used |= {output.step for output in workflow.results.values() if isinstance(output, Output)}
    for step in workflow.steps:
        if step.id not in used:
            hint = "Feed it to another step, or declare it with workflow.result(…)."
            yield Finding("orphan", step.id, "nobody uses what it gives, and it is no result", hint)


def _check_writers(workflow: Workflow) -> Iterator[Finding]:
    writers: dict[str, str] = {}
    for step in workflow.steps:
        for written in getattr(step.work, "writes", ()):
            path = str(PurePosixPath(str(written)))
            if path.startswith("/") or ".." in PurePosixPath(path).parts:
                yield Finding(
                    "bad_artifact", step.id, f"{written!r} lies outside the workspace", "Use a relative path."
                )
            if path in writers:
                message = f"{writers[path]} writes {path} too"
                yield Finding("two_writers", step.id, message, "An artifact has one writer; name two files.")
            writers.setdefault(path, step.id)


def _check_stub(step: Step, task: Task, reasons: dict[int, str]) -> Iterator[Finding]:
    if id(task) not in reasons:
        reasons[id(task)] = why_stub(task.body)
    reason = reasons[id(task)]
    if reason:
        yield Finding("stub", step.id, f"{task.name} is a stub: {reason}", "Write the body.")


def _check_experiment(place: str, experiment: Experiment) -> Iterator[Finding]:
    yield from _check_metric(place, experiment)
    if not str(experiment.command).strip():
        yield Finding("empty_command", place, "the experiment has no command")
    yield from _check_grid(place, experiment)
    if experiment.max_runs is not None and experiment.size > experiment.max_runs:
        message = f"the grid makes {experiment.size:,} runs; the budget is {experiment.max_runs:,}"
        yield Finding("over_budget", place, message, "Take values or seeds out, or raise max_runs.")


def _check_metric(place: str, experiment: Experiment) -> Iterator[Finding]:
    metric = experiment.metric
    if metric is None or not metric.name:
        yield Finding("no_metric", place, "the experiment has no metric to decide by", "Give metric=Metric(…).")
        return
    if not metric.has_direction:
        message = f"{metric.name}: whether more or less is better is not said"
        yield Finding("metric_without_direction", place, message, f"Say one of: {', '.join(DIRECTIONS)}.")
    if not any(metric.name == name or fnmatchcase(metric.name, name) for name in experiment.produces):
        known = ", ".join(experiment.produces) or "none"
        message = f"nothing is known to produce {metric.name}; the command logs: {known}"
        yield Finding("metric_not_produced", place, message, "List in produces=[…] what the command logs.")


def _check_grid(place: str, experiment: Experiment) -> Iterator[Finding]:
    for name, values in experiment.grid.items():
        if isinstance(values, str) or not len(values):
            yield Finding("bad_grid", place, f"{name} has no list of values", f'Give grid={{"{name}": [value, …]}}.')
        elif len({repr(value) for value in values}) < len(values):
            yield Finding("bad_grid", place, f"{name} has a value twice", "The run would be made twice.")
    if experiment.faults:
        return
    needed = [*experiment.grid, *([SEED] if experiment.seeds else [])]
    for name in [name for name in needed if name not in experiment.placeholders()]:
        message = f"{name} varies, but {{{name}}} is not in the command"
        yield Finding("unused_parameter", place, message, f"Every run would be the same for each {name}.")
    if SEED in experiment.placeholders() and not experiment.seeds and SEED not in experiment.grid:
        yield Finding("missing_input", f"{place}.inputs.{SEED}", "{seed} is in the command, but there are no seeds")
    unknown = [name for name in experiment.baseline or {} if name not in experiment.placeholders()]
    lacking = [name for name in experiment.grid if experiment.baseline is not None and name not in experiment.baseline]
    if unknown or lacking:
        words = f"names {', '.join(unknown)}, not in the command" if unknown else f"leaves {', '.join(lacking)} open"
        yield Finding("bad_baseline", place, f"the baseline {words}", "A baseline gives each parameter one value.")
