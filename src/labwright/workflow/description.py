"""A workflow as plain data, for people, checks and RunMode in another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from labwright.workflow.experiments import Experiment
from labwright.workflow.fingerprints import Fingerprints
from labwright.workflow.graph import Output, Step, Workflow, outputs_in
from labwright.workflow.tasks import Task
from labwright.workflow.values import Refused, encode


def describe(workflow: Workflow, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    fingerprints = Fingerprints(environment)
    return {
        "name": workflow.name,
        "steps": [_step(step, fingerprints) for step in workflow.steps],
        "results": {name: _source(output) for name, output in workflow.results.items()},
    }


def _step(step: Step, fingerprints: Fingerprints) -> dict[str, Any]:
    return {
        "id": step.id,
        "kind": _kind(step.work),
        "inputs": {str(name): _source(value) for name, value in step.inputs.items()},
        "over": None if step.over is None else {str(name): _source(value) for name, value in step.over.items()},
        "collect": step.collect,
        "after": list(step.after),
        "when": None if step.when is None else _source(step.when),
        **_work(step.work, fingerprints),
    }


def _kind(work: Any) -> str:
    return "task" if isinstance(work, Task) else "experiment" if isinstance(work, Experiment) else "unknown"


def _source(value: Any) -> dict[str, Any]:
    if isinstance(value, Output):
        return {"step": value.step, "output": value.name}
    if outputs_in(value):
        return {"list": [_source(item) for item in value]}
    try:
        return {"value": encode(value)}
    except Refused as error:
        return {"refused": str(error)}


def _work(work: Any, fingerprints: Fingerprints) -> dict[str, Any]:
    if isinstance(work, Task):
        return {"task": _task(work), "code": fingerprints.of(work)}
    if isinstance(work, Experiment):
        return {"experiment": _experiment(work)}
    return {}


def _task(task: Task) -> dict[str, Any]:
    return {
        **_interface(task),
        "name": task.name,
        "module": getattr(task, "__module__", ""),
        "doc": (task.__doc__ or "").strip(),
        "is_async": task.is_async,
        "retry": asdict(task.options.retry),
        "timeout": task.options.timeout,
    }


def _interface(work: Any) -> dict[str, Any]:
    return {
        "takes": {name: {"type": str(given.type), "required": given.required} for name, given in work.inputs.items()},
        "gives": {name: str(kind) for name, kind in work.outputs.items()},
        "writes": [str(path) for path in work.writes],
    }


def _experiment(experiment: Experiment) -> dict[str, Any]:
    try:
        declared = encode(experiment)["fields"]
    except Refused as error:
        declared = {"refused": str(error)}
    return {**_interface(experiment), **declared, "size": experiment.size}
