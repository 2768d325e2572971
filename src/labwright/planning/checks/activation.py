"""A run's command activates the environment that the project has, or that the plan makes."""

from __future__ import annotations

from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject
from labwright.planning.ir.model import WORKFLOW_FILE, task_file
from labwright.planning.project.made_environment import made_by
from labwright.planning.scan.facts import Environment


def check_activation(subject: Subject) -> Iterator[Found]:
    environment, planned = subject.scan.environment, subject.ir.workflow.environment
    activation, create = environment.activation, environment.create
    if create and planned != create:
        words = "The project has no environment, and the plan does not make it as the project's files ask for."
        hint = f"Its `environment` is: {create}"
        yield Found(code="no_environment", place=WORKFLOW_FILE, message=words, hint=hint)
    elif planned and not create and planned not in _own_commands(environment):
        words = f"The plan makes an environment by a command that the project's files do not ask for: {planned[:200]}"
        hint = "The project has an environment: leave `environment` empty."
        yield Found(code="other_environment", place=WORKFLOW_FILE, message=words, hint=hint)
    task = subject.ir.experiment
    if activation and not task.command.startswith(activation):
        words = f"The command of {task.id} does not activate the project's environment."
        yield Found(
            code="no_activation", place=task_file(task.id), message=words, hint=f"Begin it with `{activation}`."
        )


def _own_commands(environment: Environment) -> tuple[str, ...]:
    """An earlier execution may have made what is there now."""
    return (environment.recipe, *([made_by(environment.chosen)] if environment.chosen else []))
