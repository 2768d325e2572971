"""The approved workflow again, without its code: the same steps and edges, whose bodies ask the server.

It is made from what a contained child told of the code. Values pass through it sealed; no class of them is looked up.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from labwright.domain.errors import Conflict
from labwright.planning.run_mode.execution import plain
from labwright.workflow import Experiment, Metric, Output, Resources, Sealed, Task, Workflow
from labwright.workflow.graph import Step
from labwright.workflow.tasks import Options
from labwright.workflow.type_rules import ANY

Perform = Callable[[str, dict[str, Sealed]], Sealed]
Described = dict[str, Any]


def without_code(described: Described, perform: Perform) -> Workflow:
    try:
        made = Workflow(str(described["name"]))
        made.steps = [_step(step, perform) for step in described["steps"]]
        made.results = {str(name): _output(source) for name, source in described["results"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Conflict(
            f"The workflow's description cannot be used: {error!r}.", hint="Validate the plan again."
        ) from error
    return made


def _step(step: Described, perform: Perform) -> Step:
    work = experiment_of(step["experiment"]) if step["kind"] == "experiment" else _task(step, perform)
    return Step(
        id=str(step["id"]),
        work=work,
        inputs={name: _given(source) for name, source in step["inputs"].items()},
        over=None if step["over"] is None else {name: _items(source) for name, source in step["over"].items()},
        collect=step["collect"],
        after=tuple(step["after"]),
        when=None if step["when"] is None else _output(step["when"]),
    )


def _given(source: Described) -> Any:
    if "step" in source:
        return _output(source)
    return [_given(item) for item in source["list"]] if "list" in source else Sealed(source["value"])


def _items(source: Described) -> Any:
    """What is fanned out over: an output, or a list."""
    return list(Sealed(source["value"])) if "value" in source else _given(source)


def _output(source: Described) -> Output:
    return Output(str(source["step"]), str(source["output"]))


def _task(step: Described, perform: Perform) -> Task:
    step_id, code = str(step["id"]), str(step["code"])

    def body(**inputs: Sealed) -> Any:
        assert code, "the fingerprint of the real body: it is read from here, and so a part of the step's key"
        return perform(step_id, inputs)

    # Outside of our package, the engine takes what the body uses of it for its name: a new version of Labwright
    # repeats no finished step.
    body.__module__ = "plan_steps"
    takes = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Any,
            default=inspect.Parameter.empty if about["required"] else None,
        )
        for name, about in step["task"]["takes"].items()
    ]
    body.__signature__ = inspect.Signature(takes, return_annotation=Any)  # type: ignore[attr-defined]
    task = Task(body, step_id, Options())
    task.outputs = {str(name): ANY for name in step["task"]["gives"]}
    return task


def experiment_of(described: Described) -> Experiment:
    facts = plain(described)
    metric, resources = facts["metric"], facts["resources"]
    return Experiment(
        name=str(facts["name"]),
        command=str(facts["command"]),
        metric=None if metric is None else Metric(str(metric["name"]), str(metric["direction"])),
        grid=dict(facts["grid"]),
        seeds=list(facts["seeds"]),
        baseline=None if facts["baseline"] is None else dict(facts["baseline"]),
        resources=Resources(**resources),
        produces=list(facts["produces"]),
        max_runs=facts["max_runs"],
        writes=list(facts["writes"]),
        switches={name: list(words) for name, words in facts["switches"].items()},
    )
