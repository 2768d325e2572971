"""A run's command activates the environment that the project has, or that the plan makes."""

from __future__ import annotations

from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject
from labwright.planning.ir import WORKFLOW_FILE, task_file


def check_activation(subject: Subject) -> Iterator[Found]:
    activation, create = subject.scan.environment.activation, subject.scan.environment.create
    if create and subject.ir.workflow.environment != create:
        words = "The project has no environment, and the plan does not make it as the project's files ask for."
        hint = f"Its `environment` is: {create}"
        yield Found(code="no_environment", place=WORKFLOW_FILE, message=words, hint=hint)
    task = subject.ir.experiment
    if activation and not task.command.startswith(activation):
        words = f"The command of {task.id} does not activate the project's environment."
        yield Found(
            code="no_activation", place=task_file(task.id), message=words, hint=f"Begin it with `{activation}`."
        )
