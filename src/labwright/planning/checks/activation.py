"""A run's command activates the environment that the project has."""

from __future__ import annotations

from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject
from labwright.planning.ir import task_file


def check_activation(subject: Subject) -> Iterator[Found]:
    activation = subject.scan.environment.activation
    task = subject.ir.experiment
    if activation and not task.command.startswith(activation):
        words = f"The command of {task.id} does not activate the project's environment."
        yield Found(
            code="no_activation", place=task_file(task.id), message=words, hint=f"Begin it with `{activation}`."
        )
