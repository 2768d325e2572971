"""Every test file has tests, every test can be run and asserts something, and each task is tested."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.assertion_strength import weakness
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
        for test, weak in [(test, weak) for test in tests if (weak := weakness(test))]:
            words = f"{test.name} cannot tell a right task from a wrong one: {weak}."
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


def _untested(subject: Subject) -> Iterator[Found]:
    for step in subject.ir.workflow.steps:
        module = subject.modules.get(f"tests/test_{step.id}.py")
        wanted = f"experiment.tasks.{step.id}"
        if module and not any(wanted in imported_modules(node) for node in ast.walk(module.tree)):
            words = f"{module.path} does not import {step.id}, so it tests something else."
            yield Found(code="not_tested", place=module.path, message=words, hint=f"Import it from {wanted}.")
