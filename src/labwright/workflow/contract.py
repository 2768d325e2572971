"""What a check found: a code to rely on, a place, a sentence, and what to do about it."""

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


@dataclass(frozen=True)
class Finding:
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


_IDENTIFIER_HINT = "Use letters, digits and underscores, beginning with a letter: it becomes a file and a Python name."


def check_structure(workflow: Workflow) -> Iterator[Finding]:
    if not workflow.steps:
        yield Finding("empty", workflow_place(workflow), "the workflow has no steps", "Add at least one task.")
    yield from _check_names(workflow)
    steps = {step.id: step for step in workflow.steps}
    for step in workflow.steps:
        yield from _check_step(step, steps)
    yield from _check_circles(workflow)
    for name, output in workflow.results.items():
        yield from _check_source(f"results.{name}", output, steps)


def workflow_place(workflow: Workflow) -> str:
    return f"workflow {workflow.name}"


def _check_names(workflow: Workflow) -> Iterator[Finding]:
    for place, name in [(workflow_place(workflow), workflow.name), *((step.id, step.id) for step in workflow.steps)]:
        if not _is_name(name):
            yield Finding("bad_id", place, f"{name!r} is not an identifier", _IDENTIFIER_HINT)
    seen: set[str] = set()
    for step in workflow.steps:
        if step.id in seen:
            message = f"two steps are called {step.id!r}"
            yield Finding("duplicate_name", step.id, message, "Give one of them another name=….")
        seen.add(step.id)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


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
        yield from _check_when(step, steps)


def _check_inputs(step: Step, steps: dict[str, Step]) -> Iterator[Finding]:
    declared = step.work.inputs
    given = {**step.inputs, **(step.over or {})}
    for name, wanted in declared.items():
        if wanted.required and name not in given:
            message = f"nothing feeds the input {name!r} ({wanted.type})"
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


def _check_value(place: str, wanted: Input, value: Any, steps: dict[str, Step]) -> Iterator[Finding]:
    """An edge by its type, a plain value by what it is."""
    sources = outputs_in(value)
    for output in sources:
        yield from _check_source(place, output, steps)
    if sources:
        have = type_of_source(value, steps)
        if not accepts(wanted.type, have):
            names = ", ".join(map(str, sources))
            message = f"{names} is {have}, but the input takes {wanted.type}"
            yield Finding("type_mismatch", place, message, _type_hint(wanted.type, have))
    elif misfit(value, wanted.type):
        message = f"the value does not fit {wanted.type}: {misfit(value, wanted.type)}"
        yield Finding("type_mismatch", place, message)


def _type_hint(want: Type, have: Type) -> str:
    element = element_of(want)
    if element is not None and want.form == "class" and accepts(element, have):
        return "Fan out with workflow.map(…), or give a list of outputs."
    return "Change one of the two annotations, or put a task between them."


def type_of_source(value: Any, steps: dict[str, Step]) -> Type:
    """What an edge carries; a list of outputs and values is a list of whatever these are."""
    if isinstance(value, Output):
        step = steps.get(value.step)
        return (step.output_type(value.name) if step else None) or ANY
    if outputs_in(value):
        return list_of(union(*(type_of_source(item, steps) for item in value)))
    return of_class(type(value))


def _check_source(place: str, output: Any, steps: dict[str, Step]) -> Iterator[Finding]:
    if not isinstance(output, Output):
        yield Finding("unknown_source", place, f"{output!r} is no output of a step", "Use step.output(…).")
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
        yield Finding("bad_fan_out", step.id, "an experiment is not mapped; its grid is its fan-out", "Use grid={…}.")
    if not step.over or step.collect not in ("all", "finished"):
        message = "nothing to fan out over" if not step.over else f"collect={step.collect!r} is not known"
        yield Finding("bad_fan_out", step.id, message, 'Give over={"input": [values]} and collect="all" or "finished".')
    for name, value in step.over.items():
        if name in step.inputs:
            yield Finding("bad_fan_out", _place(step, name), f"{name!r} is both in over and in inputs")
        wanted = step.work.inputs.get(name)
        if wanted is not None:
            yield from _check_elements(_place(step, name), wanted, value, steps)


def _check_elements(place: str, wanted: Input, value: Any, steps: dict[str, Step]) -> Iterator[Finding]:
    if isinstance(value, Output):
        yield from _check_source(place, value, steps)
        have = type_of_source(value, steps)
        element = element_of(have)
        if element is None or not accepts(wanted.type, element):
            message = f"{value} is {have}; a fan-out over it does not give {wanted.type}"
            yield Finding("type_mismatch", place, message, f"Make that output a list of {wanted.type}.")
    elif not isinstance(value, (list, tuple)):
        yield Finding("bad_fan_out", place, f"{type(value).__name__} is no list of values or output of a step")
    else:
        for item in value:
            yield from _check_value(place, wanted, item, steps)


def _check_when(step: Step, steps: dict[str, Step]) -> Iterator[Finding]:
    place = f"{step.id}.when"
    yield from _check_source(place, step.when, steps)
    if isinstance(step.when, Output) and not accepts(of_class(bool), type_of_source(step.when, steps)):
        yield Finding("type_mismatch", place, f"{step.when} is {type_of_source(step.when, steps)}, not bool")


def _check_circles(workflow: Workflow) -> Iterator[Finding]:
    _ordered, stuck = in_order(workflow.steps)
    circle = _one_circle(stuck)
    if circle:
        message = f"these wait for each other: {' → '.join(circle)}"
        yield Finding("cycle", circle[0], message, "Take one of these edges out.")


def _one_circle(stuck: list[Step]) -> list[str]:
    """Go back from source to source until a step comes again."""
    waits = {step.id: step.waits_for() for step in stuck}
    path: list[str] = []
    here = next(iter(waits), None)
    while here is not None and here not in path:
        path.append(here)
        here = next(source for source in waits[here] if source in waits)
    return [] if here is None else [*path[path.index(here) :], here][::-1]


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


def validate_contract(workflow: Any) -> Report:
    """What must hold before anybody approves or runs this."""
    if not isinstance(workflow, Workflow):
        message = f"{type(workflow).__name__} is no Workflow"
        return Report((Finding("not_a_workflow", "create_workflow", message, "Return the Workflow."),))
    findings: list[Finding] = []
    for check in (check_structure, check_plausibility):
        try:
            findings += check(workflow)
        except Exception as error:  # noqa: BLE001 - hostile `__eq__`, `__len__` …: the workflow's fault, and a finding
            message = f"the workflow cannot be checked: {type(error).__name__}: {error}"
            findings.append(Finding("unreadable", f"workflow {workflow.name!r}", message, "Use plain values in it."))
    return Report(tuple(findings))
