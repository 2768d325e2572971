"""The workflow loads as it will be loaded to run, keeps its contract, does nothing on import, and is the IR's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labwright.planning.checks.subject import MODULE, SYMBOL, Found, Subject
from labwright.planning.ir import PlanIR


def check_entrypoint(subject: Subject) -> Iterator[Found]:
    answer = subject.child.load(MODULE, SYMBOL)
    for effect in answer.get("effects", []):
        words = f"Importing it {effect['what']}: {effect['target']}."
        yield Found(code="import_effect", place=MODULE, message=words, hint="Do it in a task's body.")
    if not answer["ok"]:
        fault = answer["fault"]
        yield Found(code=fault["code"], place=MODULE, message=fault["message"], hint=fault["hint"])
        return
    for finding in answer["contract"]["findings"]:
        yield Found(**{name: str(finding[name]) for name in ("code", "place", "message", "hint")})
    yield from as_planned(subject.ir, answer["workflow"])


def as_planned(ir: PlanIR, loaded: dict[str, Any]) -> Iterator[Found]:
    workflow, hint = ir.workflow, "Generate the code again, or change the IR."
    planned = {step.id: {n: i.source for n, i in step.inputs.items()} for step in workflow.steps}
    coded = {step["id"]: {name: _source(given) for name, given in step["inputs"].items()} for step in loaded["steps"]}
    if planned != coded:
        words = f"The code wires {coded}, the IR {planned}."
        yield Found(code="code_ir_mismatch", place=MODULE, message=words, hint=hint)
        return
    experiment = next(step["experiment"] for step in loaded["steps"] if step["id"] == workflow.grid.task)
    wanted: dict[str, Any] = {"command": ir.experiment.command, "size": workflow.grid.size}
    wanted["grid"] = {parameter.name: list(parameter.values) for parameter in workflow.grid.parameters}
    for name, value in wanted.items():
        if experiment[name] != value:
            words = f"The code's {name} is {experiment[name]}, the IR's {value}."
            yield Found(code="code_ir_mismatch", place=workflow.grid.task, message=words, hint=hint)


def _source(given: dict[str, Any]) -> str:
    return f"{given['step']}.{given['output']}" if "step" in given else repr(given)
