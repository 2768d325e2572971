"""Values of the right type that no task would compute: what its tests are to tell from the real ones."""

from __future__ import annotations

import ast
from typing import Any

from labwright.planning.ir.model import StepIR, WorkflowIR
from labwright.workflow.tasks import WHOLE

_PLAIN: dict[str, Any] = {"str": "made up", "int": -12345, "float": -12345.678, "bool": False}


def made_up_values(workflow: WorkflowIR) -> dict[str, Any]:
    """For each Python task, one that fits what the IR says it gives."""
    return {step.id: _of_step(step, workflow) for step in workflow.steps if step.kind == "python"}


def _of_step(step: StepIR, workflow: WorkflowIR) -> Any:
    if WHOLE in step.outputs:
        return _of_text(step.outputs[WHOLE], workflow)
    return {name: _of_text(kind, workflow) for name, kind in step.outputs.items()}


def _of_text(kind: str, workflow: WorkflowIR) -> Any:
    return _of(ast.parse(kind, mode="eval").body, workflow)


def _of(kind: ast.expr, workflow: WorkflowIR) -> Any:
    """A list has one item, so that a test which looks at each has something to look at."""
    if isinstance(kind, ast.Name) and kind.id in workflow.types:
        return {name: _of_text(text, workflow) for name, text in workflow.types[kind.id].items()}
    if isinstance(kind, ast.Name):
        return _PLAIN.get(kind.id, {} if kind.id in ("dict", "Dict") else [] if kind.id in ("list", "List") else None)
    if isinstance(kind, ast.Subscript):
        outer = ast.unparse(kind.value).lower()
        return [_of(kind.slice, workflow)] if outer in ("list", "sequence") else {} if outer == "dict" else None
    return None
