"""Every file that the IR calls for is there."""

from __future__ import annotations

from collections.abc import Iterator

from labwright.planning.checks.subject import TASKS, Found, Subject


def check_files(subject: Subject) -> Iterator[Found]:
    tasks = [step.id for step in subject.ir.workflow.steps]
    wanted = ["src/experiment/__init__.py", "src/experiment/workflow.py", "tests/test_workflow_structure.py"]
    wanted += [f"{TASKS}/{task}.py" for task in tasks] + [f"tests/test_{task}.py" for task in tasks]
    wanted += ["plan/implementation_plan.md"]
    for path in wanted:
        if not (subject.folder / path).is_file():
            yield Found(code="missing_file", place=path, message=f"{path} is not there.", hint="Generate it again.")
