"""The workflow and its tasks as typed data: what the plan says, in the form that code is generated from.

`ir/workflow.yaml` has what the tasks exchange and the experiment's grid; `ir/tasks/<id>.yaml` what each is to do.
"""

from __future__ import annotations

from itertools import chain
from math import prod
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, ValidationError

from labwright.domain.errors import Invalid
from labwright.planning.ir.drafts import Scalar, Strict
from labwright.workspace import PlanWorkspaceHandle

WORKFLOW_FILE = "ir/workflow.yaml"
SEED = "seed"
MAKE_ENVIRONMENT = "make_environment"  # the step for `WorkflowIR.environment`; no task has its name


def task_file(task_id: str) -> str:
    return f"ir/tasks/{task_id}.yaml"


def _identifier(text: str) -> str:
    if not text.isidentifier() or text.startswith("_") or len(text) > 60:
        raise ValueError(f"{text[:80]!r} cannot be an id: it becomes a file and a Python name")
    return text


Id = Annotated[str, AfterValidator(_identifier)]


class InputIR(Strict):
    type: str
    source: str  # task.output


class StepIR(Strict):
    """A task in its place: what it is given, from whom, and what it gives."""

    id: Id
    kind: Literal["experiment", "python"]
    inputs: dict[Id, InputIR] = {}
    outputs: dict[Id, str]
    artifacts: tuple[str, ...] = ()


class ParameterIR(Strict):
    name: Id  # in the command and in the code
    flag: str  # as the project calls it
    values: tuple[Scalar, ...] = Field(min_length=1)


class MetricIR(Strict):
    name: str = Field(min_length=1)
    direction: Literal["maximize", "minimize"]


class GridIR(Strict):
    task: Id
    parameters: tuple[ParameterIR, ...]
    seeds: tuple[int, ...] = ()
    baseline: dict[Id, Scalar] | None = None
    metric: MetricIR
    max_runs: int | None = None

    @property
    def size(self) -> int:
        """Runs, the baseline's included where the grid does not hold it."""
        points = prod(len(parameter.values) for parameter in self.parameters)
        return (points + self.baseline_apart) * max(1, len(self.seeds))

    @property
    def baseline_apart(self) -> bool:
        values = {parameter.name: parameter.values for parameter in self.parameters}
        return self.baseline is not None and any(
            value not in values.get(name, ()) for name, value in self.baseline.items()
        )


class WorkflowIR(Strict):
    name: Id
    types: dict[Id, dict[Id, str]] = {}  # records that tasks exchange
    steps: tuple[StepIR, ...] = Field(min_length=1)
    grid: GridIR
    results: dict[Id, str]  # name: task.output
    environment: str = ""  # the command that makes it before the first experiment, where the project has none

    def step(self, task_id: str) -> StepIR:
        return next(step for step in self.steps if step.id == task_id)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """From whom to whom, each once."""
        found = ((given.source.partition(".")[0], step.id) for step in self.steps for given in step.inputs.values())
        return list(dict.fromkeys(found))


class ResourcesIR(Strict):
    gpus: int = 0
    time_limit_seconds: float | None = None


class TaskIR(Strict):
    """What one task is to do, and how one sees that it was done."""

    id: Id
    responsibility: str = Field(min_length=1)
    script: str = ""  # of an experiment: the project's own
    command: str = ""
    switches: dict[Id, tuple[str, str]] = {}
    produces: tuple[str, ...] = ()
    success_criteria: tuple[str, ...] = Field(min_length=1)
    failure_conditions: tuple[str, ...] = Field(min_length=1)
    resources: ResourcesIR = ResourcesIR()


class PlanIR(Strict):
    workflow: WorkflowIR
    tasks: dict[Id, TaskIR]

    @property
    def experiment(self) -> TaskIR:
        return self.tasks[self.workflow.grid.task]


class BadIR(Invalid):
    """The IR cannot be read."""


def write_workflow(handle: PlanWorkspaceHandle, workflow: WorkflowIR) -> None:
    handle.write(WORKFLOW_FILE, _yaml(workflow))


def write_task(handle: PlanWorkspaceHandle, task: TaskIR) -> None:
    handle.write(task_file(task.id), _yaml(task))


def read_workflow(handle: PlanWorkspaceHandle) -> WorkflowIR:
    return WorkflowIR(**_content(handle, WORKFLOW_FILE, WorkflowIR))


def read_ir(handle: PlanWorkspaceHandle) -> PlanIR:
    workflow = read_workflow(handle)
    tasks = {step.id: TaskIR(**_content(handle, task_file(step.id), TaskIR)) for step in workflow.steps}
    _check_whole(workflow, tasks)
    return PlanIR(workflow=workflow, tasks=tasks)


def _check_whole(workflow: WorkflowIR, tasks: dict[str, TaskIR]) -> None:
    ids = [step.id for step in workflow.steps]
    if len(set(ids)) < len(ids):
        raise BadIR(f"{WORKFLOW_FILE}: a task id stands there twice.", hint="Give each task its own id.")
    wrong = [name for name, task in tasks.items() if task.id != name]
    if wrong:
        raise BadIR(f"{task_file(wrong[0])} tells of {tasks[wrong[0]].id}.", hint="File name and id are the same.")
    if workflow.grid.task not in ids:
        raise BadIR(f"{WORKFLOW_FILE}: the grid belongs to {workflow.grid.task}, which is no task.")
    if MAKE_ENVIRONMENT in ids:
        raise BadIR(f"{WORKFLOW_FILE}: {MAKE_ENVIRONMENT} is a step of every plan that needs it.", hint="Rename it.")
    _check_sources(workflow)


def _check_sources(workflow: WorkflowIR) -> None:
    known = {f"{step.id}.{name}": kind for step in workflow.steps for name, kind in step.outputs.items()}
    given = chain.from_iterable(
        ((f"{step.id}.{name}", i.source) for name, i in step.inputs.items()) for step in workflow.steps
    )
    for place, source in chain(given, workflow.results.items()):
        if source not in known:
            raise BadIR(f"{WORKFLOW_FILE}: {place} is fed by {source}, which no task gives.", hint="Name an output.")


def _yaml(model: Strict) -> bytes:
    return yaml.safe_dump(model.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120).encode()


def _content(handle: PlanWorkspaceHandle, path: str, model: type[Strict]) -> dict[str, Any]:
    try:
        found = yaml.safe_load(handle.read(path))
        model.model_validate(found)
    except FileNotFoundError as error:
        raise BadIR(f"{path} is not there.", hint="Compile the plan again.") from error
    except yaml.YAMLError as error:
        raise BadIR(f"{path} is no YAML: {' '.join(str(error).split())[:200]}.", hint="Mend it.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadIR(f"{path}: {place}: {first['msg']}.", hint="Mend the field, or compile again.") from error
    return dict(found)
