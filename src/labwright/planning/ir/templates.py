"""Python from the IR, by template: the skeleton of the workflow, each task's module, and a test for each."""

from __future__ import annotations

from labwright.planning.ir.model import PlanIR, ResourcesIR, StepIR, WorkflowIR
from labwright.planning.ir.task_templates import BODIES, TESTS

_HEAD = "from __future__ import annotations\n"


def skeleton(ir: PlanIR) -> dict[str, str]:
    """Everything that needs no model: the package, the types, the wiring, and the test of the wiring."""
    return {
        "src/experiment/__init__.py": '"""A generated experiment; `workflow.py` wires it."""\n',
        "src/experiment/tasks/__init__.py": '"""One module a task."""\n',
        "src/experiment/records.py": _records(ir.workflow),
        "src/experiment/workflow.py": _workflow(ir.workflow),
        "tests/test_workflow_structure.py": _structure_test(ir.workflow),
    }


def _records(workflow: WorkflowIR) -> str:
    parts = [f'"""Records that tasks exchange."""\n\n{_HEAD}\nfrom typing import Any, TypedDict\n']
    for name, fields in workflow.types.items():
        lines = "".join(f"    {field}: {kind}\n" for field, kind in fields.items())
        parts.append(f"\n\nclass {name}(TypedDict):\n{lines}")
    return "".join(parts)


def _workflow(workflow: WorkflowIR) -> str:
    imports = "".join(f"from experiment.tasks.{step.id} import {step.id}\n" for step in workflow.steps)
    steps = "".join(_added(step) for step in workflow.steps)
    results = "".join(f'    workflow.result("{name}", {_output(out)})\n' for name, out in workflow.results.items())
    return (
        f'"""The workflow of this plan."""\n\n{_HEAD}\n{imports}from labwright.workflow import Output, Workflow\n\n\n'
        f'def create_workflow() -> Workflow:\n    workflow = Workflow("{workflow.name}")\n{steps}{results}'
        "    return workflow\n"
    )


def _added(step: StepIR) -> str:
    inputs = ", ".join(f'"{name}": {_output(given.source)}' for name, given in step.inputs.items())
    given = f", inputs={{{inputs}}}" if inputs else ""
    return f'    workflow.add({step.id}{given}, name="{step.id}")\n'


def _output(source: str) -> str:
    step, _, name = source.partition(".")
    return f'Output("{step}", "{name}")'


def _structure_test(workflow: WorkflowIR) -> str:
    ids = [step.id for step in workflow.steps]
    return (
        f'"""The workflow is wired as planned."""\n\n{_HEAD}\nfrom experiment.workflow import create_workflow\n'
        "from labwright.workflow import validate_contract\n\n\n"
        "def test_it_has_the_planned_steps():\n"
        f"    assert [step.id for step in create_workflow().steps] == {ids!r}\n\n\n"
        "def test_its_contract_holds():\n    report = validate_contract(create_workflow())\n"
        "    assert report.ok, str(report)\n"
    )


def task_module(ir: PlanIR, task_id: str) -> str:
    if task_id == ir.workflow.grid.task:
        return _experiment(ir)
    grid = {parameter.name: list(parameter.values) for parameter in ir.workflow.grid.parameters}
    return BODIES[task_id].replace("@BASELINE@", repr(ir.workflow.grid.baseline)).replace("@GRID@", repr(grid))


def task_test(ir: PlanIR, task_id: str) -> str:
    if task_id == ir.workflow.grid.task:
        return _experiment_test(ir)
    return TESTS[task_id].replace("@BASELINE@", repr(ir.workflow.grid.baseline))


def _experiment(ir: PlanIR) -> str:
    grid, task = ir.workflow.grid, ir.experiment
    values = {parameter.name: list(parameter.values) for parameter in grid.parameters}
    lines = (
        f'    "{task.id}",',
        f"    command={task.command!r},",
        f"    grid={values!r},",
        f"    seeds={list(grid.seeds)!r},",
        f"    metric=Metric({grid.metric.name!r}, {grid.metric.direction!r}),",
        f"    produces={list(task.produces)!r},",
        f"    baseline={grid.baseline!r},",
        f"    resources=Resources({_resources(task.resources)}),",
        f"    max_runs={grid.max_runs!r},",
        f"    switches={task.switches!r},",
    )
    body = "\n".join(lines)
    return (
        f'"""{task.responsibility} It declares the runs and starts none."""\n\n{_HEAD}\n'
        f"from labwright.workflow import Experiment, Metric, Resources\n\n{task.id} = Experiment(\n{body}\n)\n"
    )


def _resources(wanted: ResourcesIR) -> str:
    limit = wanted.time_limit_seconds
    return f"gpus={wanted.gpus}" + (f", time_limit_seconds={limit!r}" if limit is not None else "")


def _experiment_test(ir: PlanIR) -> str:
    name = ir.workflow.grid.task
    return (
        f'"""The declared runs are the planned ones."""\n\n{_HEAD}\nfrom experiment.tasks.{name} import {name}\n\n\n'
        "def test_it_declares_the_planned_runs():\n"
        f"    assert len({name}.configurations()) == {ir.workflow.grid.size}\n"
        f"\n\ndef test_every_run_has_a_command_of_its_own():\n"
        f"    commands = [{name}.command_for(configuration, {{}}) for configuration in {name}.configurations()]\n"
        "    assert len(set(commands)) == len(commands)\n"
    )
