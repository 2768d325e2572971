"""`validate_contract`: find every fault of a workflow at once, by rules. No task body runs.

Structure first (names, edges, types, no cycle), which `run` requires too. Then plausibility: no stubs, no unused steps,
one writer per artifact, and a metric that the command logs.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from labwright.workflow.experiments import DIRECTIONS, SEED, Experiment
from labwright.workflow.graph import Output, Step, Workflow, in_order, outputs_in
from labwright.workflow.stubs import why_stub
from labwright.workflow.tasks import Input, Task
from labwright.workflow.type_rules import ANY, Type, accepts, element_of, list_of, misfit, of_class, union

_IDENTIFIER_HINT = "Use letters, digits and underscores, and start with a letter: it names a file and a Python object."


@dataclass(frozen=True)
class Finding:
    """One fault: a stable code, its place, a message, and what to do about it."""

    code: str
    place: str  # `step`, `step.inputs.name`, `results.name`, or the workflow itself
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message} [{self.code}]" + (f" {self.hint}" if self.hint else "")


@dataclass(frozen=True)
class Report:
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def codes(self) -> list[str]:
        return [finding.code for finding in self.findings]

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "no findings"

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, "findings": [asdict(finding) for finding in self.findings]}


def check_structure(workflow: Workflow) -> Iterator[Finding]:
    if not workflow.steps:
        yield Finding("empty", workflow_place(workflow), "the workflow has no steps", "Add at least one task.")
    for place, name in [(workflow_place(workflow), workflow.name), *((step.id, step.id) for step in workflow.steps)]:
        is_text = isinstance(name, str) and name.isascii()
        if not is_text or not name.isidentifier() or keyword.iskeyword(name):
            yield Finding("bad_id", place, f"{name!r} is not an identifier", _IDENTIFIER_HINT)
    seen: set[str] = set()
    for step in workflow.steps:
        if step.id in seen:
            message = f"two steps are called {step.id!r}"
            yield Finding("duplicate_name", step.id, message, "Give one of them another name=….")
        seen.add(step.id)
    steps = {step.id: step for step in workflow.steps}
    for step in workflow.steps:
        yield from _check_step(step, steps)
    yield from _check_cycles(workflow)
    for name, output in workflow.results.items():
        yield from _check_source(f"results.{name}", output, steps)


def workflow_place(workflow: Workflow) -> str:
    return f"workflow {workflow.name}"


def _check_step(step: Step, steps: dict[str, Step]) -> Iterator[Finding]:
    if not isinstance(step.work, (Task, Experiment)):
        message = f"{type(step.work).__name__} is neither a task nor an experiment"
        yield Finding("not_a_task", step.id, message, "Decorate the function or class with @task.")
        return
    for code, message in step.work.faults:
        yield Finding(code, step.id, message, "Inputs and outputs are typed by the annotations of the body.")
    for missing in [id for id in step.after if id not in steps]:
        yield Finding("unknown_source", f"{step.id}.after", f"there is no step {missing!r}")
    yield from _check_inputs(step, steps)
    yield from _check_fan_out(step, steps)
    if step.when is not None:
        place = f"{step.id}.when"
        yield from _check_source(place, step.when, steps)
        if isinstance(step.when, Output) and not accepts(of_class(bool), type_of_source(step.when, steps)):
            yield Finding("type_mismatch", place, f"{step.when} is {type_of_source(step.when, steps)}, not bool")


def _check_inputs(step: Step, steps: dict[str, Step]) -> Iterator[Finding]:
    declared = step.work.inputs
    given = {**step.inputs, **(step.over or {})}
    for name, required in declared.items():
        if required.required and name not in given:
            message = f"nothing feeds the input {name!r} ({required.type})"
            yield Finding("missing_input", _place(step, name), message, "Give it a source in inputs={…}, or a default.")
    for name in given:
        if name not in declared:
            message = f"{step.work.name} has no input {name!r}"
            yield Finding("unknown_input", _place(step, name), message, f"It has: {', '.join(declared) or 'none'}.")
    for name, value in step.inputs.items():
        if name in declared:
            yield from _check_value(_place(step, name), declared[name], value, steps)


def _place(step: Step, name: object) -> str:
    return f"{step.id}.inputs.{name}"


def _check_value(place: str, declared: Input, value: Any, steps: dict[str, Step]) -> Iterator[Finding]:
    """Check an edge by its type and a plain value by its content."""
    sources = outputs_in(value)
    for output in sources:
        yield from _check_source(place, output, steps)
    if sources:
        have = type_of_source(value, steps)
        if not accepts(declared.type, have):
            names = ", ".join(map(str, sources))
            message = f"{names} is {have}, but the input takes {declared.type}"
            hint = "Change one of the two annotations, or put a task between them."
            element = element_of(declared.type)
            if element is not None and declared.type.form == "class" and accepts(element, have):
                hint = "Fan out with workflow.map(…), or give a list of outputs."
            yield Finding("type_mismatch", place, message, hint)
    elif misfit(value, declared.type):
        message = f"the value does not fit {declared.type}: {misfit(value, declared.type)}"
        yield Finding("type_mismatch", place, message)


def type_of_source(value: Any, steps: dict[str, Step]) -> Type:
    """Return the type of an edge; for a list of outputs and values, a list of their types."""
    if isinstance(value, Output):
        step = steps.get(value.step)
        return (step.output_type(value.name) if step else None) or ANY
    if outputs_in(value):
        return list_of(union(*(type_of_source(item, steps) for item in value)))
    return of_class(type(value))


def _check_source(place: str, output: Any, steps: dict[str, Step]) -> Iterator[Finding]:
    if not isinstance(output, Output):
        yield Finding("unknown_source", place, f"{output!r} is not an output of a step", "Use step.output(…).")
    elif output.step not in steps:
        known = ", ".join(list(steps)[:10])
        yield Finding("unknown_source", place, f"there is no step {output.step!r}", f"There are: {known}.")
    elif steps[output.step].output_type(output.name) is None and hasattr(steps[output.step].work, "outputs"):
        known = ", ".join(steps[output.step].work.outputs)
        message = f"{output.step} has no output {output.name!r}"
        yield Finding("undeclared_output", place, message, f"Its annotation declares: {known}.")


def _check_fan_out(step: Step, steps: dict[str, Step]) -> Iterator[Finding]:
    if step.over is None:
        return
    if isinstance(step.work, Experiment):
        yield Finding(
            "bad_fan_out", step.id, "an experiment cannot be mapped: its grid is its fan-out", "Use grid={…}."
        )
    if not step.over or step.collect not in ("all", "finished"):
        message = "there is nothing to fan out over" if not step.over else f"collect={step.collect!r} is not valid"
        yield Finding("bad_fan_out", step.id, message, 'Give over={"input": [values]} and collect="all" or "finished".')
    for name, value in step.over.items():
        place = _place(step, name)
        if name in step.inputs:
            yield Finding("bad_fan_out", place, f"{name!r} is both in over and in inputs")
        declared = step.work.inputs.get(name)
        if declared is None:
            continue
        if isinstance(value, Output):
            yield from _check_source(place, value, steps)
            have = type_of_source(value, steps)
            element = element_of(have)
            if element is None or not accepts(declared.type, element):
                message = f"{value} is {have}; its items are not {declared.type}"
                yield Finding("type_mismatch", place, message, f"Make that output a list of {declared.type}.")
        elif not isinstance(value, (list, tuple)):
            message = f"{type(value).__name__} is not a list of values or an output of a step"
            yield Finding("bad_fan_out", place, message)
        else:
            for item in value:
                yield from _check_value(place, declared, item, steps)


def _check_cycles(workflow: Workflow) -> Iterator[Finding]:
    _ordered, stuck = in_order(workflow.steps)
    if not stuck:
        return
    waits = {step.id: step.waits_for() for step in stuck}
    path: list[str] = []
    here = stuck[0].id
    while here not in path:  # follow the sources backwards until a step repeats
        path.append(here)
        here = next(source for source in waits[here] if source in waits)
    cycle = [*path[path.index(here) :], here][::-1]
    message = f"these steps wait for each other: {' → '.join(cycle)}"
    yield Finding("cycle", cycle[0], message, "Remove one of these edges.")


def check_plausibility(workflow: Workflow) -> Iterator[Finding]:
    used = {source for step in workflow.steps for source in step.waits_for()}
    used |= {output.step for output in workflow.results.values() if isinstance(output, Output)}
    for step in workflow.steps:
        if step.id not in used:
            hint = "Feed it to another step, or declare it with workflow.result(…)."
            yield Finding("orphan", step.id, "its outputs are not used, and it is not a result", hint)
    yield from _check_writers(workflow)
    reasons: dict[int, str] = {}  # by task: one task may be in a thousand steps
    for step in workflow.steps:
        if isinstance(step.work, Experiment):
            yield from _check_experiment(step.id, step.work)
        elif isinstance(step.work, Task):
            if id(step.work) not in reasons:
                reasons[id(step.work)] = why_stub(step.work.body)
            reason = reasons[id(step.work)]
            if reason:
                yield Finding("stub", step.id, f"{step.work.name} is a stub: {reason}", "Write the body.")


def _check_writers(workflow: Workflow) -> Iterator[Finding]:
    writers: dict[str, str] = {}
    for step in workflow.steps:
        for written in getattr(step.work, "writes", ()):
            path = str(PurePosixPath(str(written)))
            if path.startswith("/") or ".." in PurePosixPath(path).parts:
                yield Finding("bad_artifact", step.id, f"{written!r} is outside the workspace", "Use a relative path.")
            if path in writers:
                message = f"{writers[path]} also writes {path}"
                yield Finding("two_writers", step.id, message, "An artifact has one writer. Use two file names.")
            writers.setdefault(path, step.id)


def _check_experiment(place: str, experiment: Experiment) -> Iterator[Finding]:
    metric = experiment.metric
    if metric is None or not metric.name:
        yield Finding("no_metric", place, "the experiment has no metric", "Give metric=Metric(…).")
    else:
        if not metric.has_direction:
            message = f"{metric.name} has no direction"
            yield Finding("metric_without_direction", place, message, f"Use one of: {', '.join(DIRECTIONS)}.")
        if not any(metric.name == name or fnmatchcase(metric.name, name) for name in experiment.produces):
            known = ", ".join(experiment.produces) or "none"
            message = f"the command is not known to log {metric.name}; it logs: {known}"
            yield Finding("metric_not_produced", place, message, "List the metrics of the command in produces=[…].")
    if not str(experiment.command).strip():
        yield Finding("empty_command", place, "the experiment has no command")
    yield from _check_grid(place, experiment)
    if experiment.max_runs is not None and experiment.size > experiment.max_runs:
        message = f"the grid has {experiment.size:,} runs, but the budget is {experiment.max_runs:,}"
        yield Finding("over_budget", place, message, "Remove values or seeds, or raise max_runs.")


def _check_grid(place: str, experiment: Experiment) -> Iterator[Finding]:
    for name, values in experiment.grid.items():
        if isinstance(values, str) or not len(values):
            yield Finding("bad_grid", place, f"{name} has no list of values", f'Give grid={{"{name}": [value, …]}}.')
        elif len({repr(value) for value in values}) < len(values):
            yield Finding("bad_grid", place, f"{name} has a value twice", "The same run would start twice.")
    if experiment.faults:
        return
    needed = [*experiment.grid, *([SEED] if experiment.seeds else [])]
    for name in [name for name in needed if name not in experiment.placeholders()]:
        message = f"{name} varies, but the command does not contain {{{name}}}"
        yield Finding("unused_parameter", place, message, f"All values of {name} would start the same run.")
    if SEED in experiment.placeholders() and not experiment.seeds and SEED not in experiment.grid:
        yield Finding("missing_input", f"{place}.inputs.{SEED}", "the command contains {seed}, but there are no seeds")
    unknown = [name for name in experiment.baseline or {} if name not in experiment.placeholders()]
    missing = [name for name in experiment.grid if experiment.baseline is not None and name not in experiment.baseline]
    if unknown or missing:
        fault = (
            f"names {', '.join(unknown)}, not in the command" if unknown else f"has no value for {', '.join(missing)}"
        )
        yield Finding("bad_baseline", place, f"the baseline {fault}", "Give each parameter one value.")


def validate_contract(workflow: Any) -> Report:
    """Return all findings about a workflow. It must have none before it is approved or run."""
    if not isinstance(workflow, Workflow):
        message = f"{type(workflow).__name__} is not a Workflow"
        return Report((Finding("not_a_workflow", "create_workflow", message, "Return the Workflow."),))
    findings: list[Finding] = []
    for check in (check_structure, check_plausibility):
        try:
            findings += check(workflow)
        except Exception as error:  # noqa: BLE001 - a hostile `__eq__` or `__len__` is a fault of the workflow
            message = f"the workflow cannot be checked: {type(error).__name__}: {error}"
            findings.append(Finding("unreadable", f"workflow {workflow.name!r}", message, "Use plain values in it."))
    return Report(tuple(findings))
