"""Every test asserts something and passes, told by a runner that the tests cannot answer for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject


def check_tests(subject: Subject) -> Iterator[Found]:
    files = subject.python_files("tests")
    wanted = {path: list(_tests(ast.parse(text))) for path, text in files.items()}
    for path, tests in wanted.items():
        if not tests:
            yield Found(code="no_tests", place=path, message="There is no test in it.")
        for test in [test for test in tests if not _asserts(test)]:
            yield Found(code="asserts_nothing", place=f"{path}:{test.lineno}", message=f"{test.name} asserts nothing.")
    ran = subject.child.run_tests()
    if ran is None:
        yield Found(code="tests_no_answer", place="tests", message="The tests did not come to their end.")
        return
    for path, tests in wanted.items():
        told = ran.get(path.removeprefix("tests/"), {"whole": False, "tests": {}})
        yield from _outcomes(path, tests, told["tests"], whole=told["whole"])


def _outcomes(path: str, tests: list[ast.FunctionDef], told: dict[str, str], *, whole: bool) -> Iterator[Found]:
    if not whole or "(import)" in told:
        words = told.get("(import)", "Its process ended before its tests did.")
        yield Found(code="tests_no_answer", place=path, message=words)
    for test in tests:
        outcome = told.get(test.name, "it was not run")
        if outcome != "passed":
            yield Found(code="test_failed", place=f"{path}:{test.lineno}", message=f"{test.name}: {outcome[-400:]}")


def _tests(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def _asserts(test: ast.FunctionDef) -> bool:
    asserts = [node for node in ast.walk(test) if isinstance(node, ast.Assert)]
    return any(not isinstance(node.test, ast.Constant) for node in asserts)
