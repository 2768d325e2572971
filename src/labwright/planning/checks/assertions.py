"""Every test file has tests, every test can be run and asserts something, and each task is tested."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.names import imported_modules
from labwright.planning.checks.subject import Found, Module, Subject

_Test = ast.FunctionDef | ast.AsyncFunctionDef


def check_assertions(subject: Subject) -> Iterator[Found]:
    for module in subject.below("tests"):
        yield from _unusable(module)
        tests = tests_in(module)
        if not tests:
            words = f"There is no test in {module.path}."
            yield Found(code="no_tests", place=module.path, message=words, hint="Define def test_…(): with an assert.")
        for test in [test for test in tests if not _asserts(test)]:
            words = f"{test.name} asserts nothing."
            hint = "Compare what the task gives with what it should give."
            yield Found(code="asserts_nothing", place=module.at(test), message=words, hint=hint)
    yield from _untested(subject)


def tests_in(module: Module) -> list[ast.FunctionDef]:
    """Those that are run: plain functions of the module."""
    return [node for node in module.tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def _unusable(module: Module) -> Iterator[Found]:
    hint = "A test is a plain function without parameters, each with its own name."
    seen: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, _Test) and node.name.startswith("test_"):
            takes = [*node.args.args, *node.args.posonlyargs, *node.args.kwonlyargs]
            if isinstance(node, ast.AsyncFunctionDef) or takes or node.decorator_list or node.name in seen:
                words = f"{node.name} would not be run as it stands."
                yield Found(code="unusable_test", place=module.at(node), message=words, hint=hint)
            seen.add(node.name)


def _asserts(test: ast.FunctionDef) -> bool:
    """An assertion that could fail: it compares something that was computed, and is reached."""
    return any(isinstance(node, ast.Assert) and _can_fail(node.test) for node in _reached(test.body))


def _reached(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Without functions inside, without what follows a return, and without a branch that a constant shuts."""
    for statement in body:
        if isinstance(statement, ast.Return):
            return
        if isinstance(statement, _Test | ast.ClassDef):
            continue
        if isinstance(statement, ast.If) and isinstance(statement.test, ast.Constant) and not statement.test.value:
            yield from _reached(statement.orelse)
            continue
        yield statement
        for part in ("body", "orelse", "finalbody"):
            yield from _reached(getattr(statement, part, []))


def _can_fail(expression: ast.expr) -> bool:
    if isinstance(expression, ast.Tuple):
        return False  # a tuple with anything in it is true
    if isinstance(expression, ast.BoolOp) and isinstance(expression.op, ast.Or):
        return all(_can_fail(value) for value in expression.values)
    if isinstance(expression, ast.Compare) and ast.dump(expression.left) == ast.dump(expression.comparators[0]):
        return len(expression.comparators) > 1
    return any(isinstance(node, ast.Name | ast.Call) for node in ast.walk(expression))


def _untested(subject: Subject) -> Iterator[Found]:
    for step in subject.ir.workflow.steps:
        module = subject.modules.get(f"tests/test_{step.id}.py")
        wanted = f"experiment.tasks.{step.id}"
        if module and not any(wanted in imported_modules(node) for node in ast.walk(module.tree)):
            words = f"{module.path} does not import {step.id}, so it tests something else."
            yield Found(code="not_tested", place=module.path, message=words, hint=f"Import it from {wanted}.")
