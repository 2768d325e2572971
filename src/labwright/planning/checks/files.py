"""Every file that the IR calls for is there, and Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject


def check_files(subject: Subject) -> Iterator[Found]:
    tasks = [step.id for step in subject.ir.workflow.steps]
    wanted = ["src/experiment/__init__.py", "src/experiment/workflow.py", "tests/test_workflow_structure.py"]
    wanted += [f"src/experiment/tasks/{task}.py" for task in tasks] + [f"tests/test_{task}.py" for task in tasks]
    for path in wanted:
        if not (subject.handle.paths.dir / path).is_file():
            yield Found(code="missing_file", place=path, message=f"{path} is not there.", hint="Generate it again.")
    for path, text in {**subject.python_files("src"), **subject.python_files("tests")}.items():
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as error:
            yield Found(code="does_not_compile", place=path, message=f"{path} is no Python: {error}.")
