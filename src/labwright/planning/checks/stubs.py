"""No task is a stub, also not by a helper: an empty body, `NotImplementedError`, a constant for a result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.subject import TASKS, Found, Module, Subject
from labwright.planning.ir.model import GridIR
from labwright.workflow.stubs import why_stub_text

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COUNTS = (0, 1, -1)  # where something is missing, or counted: no measurement


def check_stubs(subject: Subject) -> Iterator[Found]:
    ids = {step.id for step in subject.ir.workflow.steps}
    for module in subject.below(TASKS):
        helpers: dict[str, str] = {}
        for function in [node for node in module.tree.body if isinstance(node, _Function)]:
            reason = why_stub_text(function)
            if reason and function.name not in ids:
                helpers[function.name] = reason
                reason = reason if _takes_anything(function) else ""
            if reason:
                words = f"{function.name} is a stub: {reason}."
                yield Found(code="stub", place=module.at(function), message=words, hint="Write the body.")
        yield from _constants_of(module, ids, helpers)
    yield from _written_down(subject)


def _takes_anything(function: _Function) -> bool:
    """A helper without parameters may well name something; one with parameters that ignores them computes nothing."""
    given = function.args
    return bool(given.args or given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg)


def _constants_of(module: Module, ids: set[str], helpers: dict[str, str]) -> Iterator[Found]:
    """A task that only hands on what such a helper says."""
    for function in module.tree.body:
        if not isinstance(function, _Function) or function.name not in ids:
            continue
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
        named = [_called(value) for value in returned]
        if named and all(name in helpers for name in named):
            words = f"{function.name} is a stub: it gives what {named[0]} gives, and {helpers[named[0]]}."
            yield Found(code="stub", place=module.at(function), message=words, hint="Compute it from the inputs.")


def _called(value: ast.expr) -> str:
    return value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""


def _written_down(subject: Subject) -> Iterator[Found]:
    """A measured field of a record that is a number in the text: `{"mean": 0.93}`."""
    measured = {
        name for fields in subject.ir.workflow.types.values() for name, kind in fields.items() if kind == "float"
    }
    for module in subject.below(TASKS):
        known = _numbers(module.tree)
        records = [node for node in ast.walk(module.tree) if isinstance(node, ast.Dict)]
        for node in [node for node in records if not _is_planned(node, subject.ir.workflow.grid)]:
            for key, value in zip(node.keys, node.values, strict=True):
                number = _number(value, known)
                if isinstance(key, ast.Constant) and key.value in measured and number not in (None, *_COUNTS):
                    words = f"{key.value} is written down as {number}; a task computes it from what it is given."
                    yield Found(code="stub", place=module.at(node), message=words, hint="Compute it from the inputs.")


def _is_planned(node: ast.Dict, grid: GridIR) -> bool:
    """A configuration of the plan: a parameter may be called what a record's field is called, such as `noise`."""
    try:
        found = ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    planned = {parameter.name: list(parameter.values) for parameter in grid.parameters}
    for name, value in (grid.baseline or {}).items():
        planned.setdefault(name, []).append(value)
    return all(value in planned.get(name, ()) for name, value in found.items())


def _numbers(tree: ast.Module) -> dict[str, float]:
    """Names that are bound once in the file, to a number."""
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            number = _number(node.value, {})
            if number is not None and names.count(node.targets[0].id) == 1:
                found[node.targets[0].id] = number
    return found


def _number(value: ast.expr, known: dict[str, float]) -> float | None:
    if isinstance(value, ast.Name):
        return known.get(value.id)
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("float", "round") and value.args:
        return _number(value.args[0], known)
    try:
        found = ast.literal_eval(value)
    except (ValueError, TypeError):
        return None
    if isinstance(found, str):
        return _from_text(found)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _from_text(text: str) -> float | None:
    try:
        return float(text) if text.lower() != "nan" else None
    except ValueError:
        return None
