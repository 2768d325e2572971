"""The workflow that the IR means, built from data. Its bodies are never run, so no generated code is involved."""

from __future__ import annotations

import inspect
import typing
from pathlib import Path
from types import FunctionType
from typing import Any

from labwright.planning.ir.model import PlanIR, StepIR, WorkflowIR
from labwright.workflow import Experiment, ExperimentResult, ExperimentRun, Metric, Output, Resources, Workflow
from labwright.workflow.annotations import NameScope, read_annotation
from labwright.workflow.tasks import WHOLE, Options, Task
from labwright.workflow.type_rules import Type

# What an annotation of generated code may name beside the IR's records and Python's own types.
_TYPING = ("Any", "Dict", "List", "Literal", "Mapping", "Optional", "Sequence", "Tuple", "Union")
_TYPES: dict[str, Any] = {
    **{name: getattr(typing, name) for name in _TYPING},
    "ExperimentRun": ExperimentRun,
    "ExperimentResult": ExperimentResult,
    "Path": Path,
}


class IRTypes:
    """Types as the IR and its code write them, records included. Text is parsed, never evaluated."""

    def __init__(self, workflow: WorkflowIR) -> None:
        self.names = {**_TYPES, **{name: _record(name, fields) for name, fields in workflow.types.items()}}

    def of(self, text: str) -> Type:
        return read_annotation(text, NameScope(self.names))


def workflow_from(ir: PlanIR, types: IRTypes) -> Workflow:
    made = Workflow(ir.workflow.name)
    for step in ir.workflow.steps:
        work = _experiment(ir, step) if step.id == ir.workflow.grid.task else _task(step, types.names)
        made.add(work, inputs={name: _output(given.source) for name, given in step.inputs.items()}, name=step.id)
    for name, source in ir.workflow.results.items():
        made.result(name, _output(source))
    return made


def gives_of(step: StepIR) -> str:
    return ", ".join(f"{name}: {text}" for name, text in step.outputs.items())


def _record(name: str, fields: dict[str, str]) -> Any:
    return type(name, (dict,), {"__total__": True, "__annotations__": dict(fields), "__module__": __name__})


def _output(source: str) -> Output:
    step, _, name = source.partition(".")
    return Output(step, name)


def _task(step: StepIR, names: dict[str, Any]) -> Task:
    inputs = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=given.type)
        for name, given in step.inputs.items()
    ]
    returns: Any = step.outputs.get(WHOLE) or _record(f"{step.id}_outputs", step.outputs)
    body = FunctionType(_not_run.__code__, names, step.id)
    body.__signature__ = inspect.Signature(inputs, return_annotation=returns)  # type: ignore[attr-defined]
    return Task(body, step.id, Options(writes=step.artifacts))


def _not_run(**_given: Any) -> Any:
    raise AssertionError("what the IR means is not run")


def _experiment(ir: PlanIR, step: StepIR) -> Experiment:
    grid, task = ir.workflow.grid, ir.experiment
    return Experiment(
        step.id,
        command=task.command,
        metric=Metric(grid.metric.name, grid.metric.direction),
        grid={parameter.name: list(parameter.values) for parameter in grid.parameters},
        seeds=list(grid.seeds),
        baseline=grid.baseline,
        resources=Resources(gpus=task.resources.gpus, time_limit_seconds=task.resources.time_limit_seconds),
        produces=list(task.produces),
        max_runs=grid.max_runs,
        writes=step.artifacts,
        switches=dict(task.switches),
    )
