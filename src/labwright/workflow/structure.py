"""What must hold for a workflow to be run at all: names, edges, types, no circle. `run` refuses what fails here."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from typing import Any

from labwright.workflow.experiments import Experiment
from labwright.workflow.graph import Output, Step, Workflow, in_order, outputs_in
from labwright.workflow.reports import Finding
from labwright.workflow.tasks import Input, Task
from labwright.workflow.type_rules import ANY, Type, accepts, element_of, list_of, misfit, of_class, union

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
