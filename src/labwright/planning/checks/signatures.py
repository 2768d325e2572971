"""Each task's module defines the task of the IR: its name, what it takes and what it gives, as types.

Read from the text, so it holds whatever the code does when it is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.names import full_name, imported_names
from labwright.planning.checks.subject import TASKS, Found, Module, Subject
from labwright.planning.ir.model import StepIR
from labwright.planning.ir.workflow import gives_of
from labwright.workflow.annotations import fields_of
from labwright.workflow.tasks import WHOLE

_DECORATORS = ("labwright.workflow.task", "labwright.workflow.tasks.task")


def check_signatures(subject: Subject) -> Iterator[Found]:
    for step in [step for step in subject.ir.workflow.steps if step.kind == "python"]:
        module = subject.modules.get(f"{TASKS}/{step.id}.py")
        if module is None or module.fault:
            continue
        bound = [node for node in module.tree.body if step.id in _names_bound(node)]
        if len(bound) != 1 or not isinstance(bound[0], ast.FunctionDef | ast.AsyncFunctionDef):
            words = f"{module.path} has to define {step.id} once, as a function."
            yield Found(code="not_a_task", place=module.path, message=words, hint=f"Write @task def {step.id}(…).")
        elif not _is_task(bound[0], imported_names(module.tree)):
            words = f"{step.id} is not decorated with @task, and with nothing else."
            yield Found(code="not_a_task", place=module.at(bound[0]), message=words, hint="Write @task above it.")
        else:
            yield from _types(subject, step, module, bound[0])


def _names_bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    stored = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    if isinstance(node, ast.Import | ast.ImportFrom):
        stored |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    return stored


def _is_task(function: ast.FunctionDef | ast.AsyncFunctionDef, imported: dict[str, str]) -> bool:
    heads = [node.func if isinstance(node, ast.Call) else node for node in function.decorator_list]
    return len(heads) == 1 and full_name(heads[0], imported) in _DECORATORS


def _types(
    subject: Subject, step: StepIR, module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Found]:
    given = function.args
    parameters = {part.arg: part.annotation for part in (*given.args, *given.kwonlyargs)}
    defaults = len(given.defaults) + sum(default is not None for default in given.kw_defaults)
    required = list(parameters)[: len(parameters) - defaults]
    if given.vararg or given.kwarg or given.posonlyargs or not set(required) <= set(step.inputs) <= set(parameters):
        words = (
            f"{step.id} takes {', '.join(parameters) or 'nothing'}, the IR gives {', '.join(step.inputs) or 'nothing'}."
        )
        yield Found(code="wrong_inputs", place=module.at(function), message=words, hint="Name the IR's inputs.")
        return
    for name, declared in step.inputs.items():
        found = parameters[name]
        if found is None or subject.types.of(ast.unparse(found)) != subject.types.of(declared.type):
            have = ast.unparse(found) if found else "nothing"
            words = f"{step.id} takes {name} as {have}, the IR gives {declared.type}."
            yield Found(code="type_mismatch", place=module.at(function), message=words, hint="Write the IR's type.")
    returns = ast.unparse(function.returns) if function.returns else ""
    if not returns or not _gives(returns, step, subject):
        words = f"{step.id} returns {returns or 'nothing that is said'}, the IR has {gives_of(step)}."
        yield Found(code="type_mismatch", place=module.at(function), message=words, hint="Write the IR's type.")


def _gives(returns: str, step: StepIR, subject: Subject) -> bool:
    """All of it, or a record with the IR's outputs as fields."""
    kind = subject.types.of(returns)
    parts = {WHOLE: kind, **{part.name: part.type for part in fields_of(kind)}}
    return all(parts.get(name) == subject.types.of(text) for name, text in step.outputs.items())
