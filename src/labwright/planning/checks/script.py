"""The command starts a script that is there, and starts it as the project does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject
from labwright.planning.ir.model import task_file
from labwright.planning.scan import EntryPoint, Environment, run_command

_QUOTED = re.compile(r"'[^']*'")
_MORE = re.compile(r"[;&|`$<>()#\n\\]")  # what a shell does not take as a plain word


def check_script(subject: Subject) -> Iterator[Found]:
    task, place = subject.ir.experiment, task_file(subject.ir.experiment.id)
    entry = subject.scan.entry_point(task.script)
    if entry is None:
        known = ", ".join(entry.path for entry in subject.scan.entry_points[:5]) or "nothing"
        words = f"{task.script!r} cannot be started here."
        yield Found(code="no_such_script", place=place, message=words, hint=f"The project has: {known}.")
        return
    start = start_of(entry, subject.scan.environment)
    rest = task.command.removeprefix(subject.scan.environment.activation)
    if start not in rest:
        words = f"The command starts something else than {task.script}: {task.command[:200]}"
        yield Found(code="no_such_script", place=place, message=words, hint=f"It is started by `{start}`.")
    elif entry.subcommand and entry.subcommand not in rest.split():
        words = f"The command leaves out {entry.subcommand}: {task.command[:200]}"
        yield Found(code="no_such_script", place=place, message=words, hint=f"The task is about `{entry.name}`.")
    elif _MORE.search(_QUOTED.sub("", rest)):
        words = f"The command does more than start {task.script}: {task.command[:200]}"
        yield Found(code="more_than_a_script", place=place, message=words, hint="One command, one script.")


def start_of(entry: EntryPoint, environment: Environment) -> str:
    """The words that start the script, without the activation before and the flags behind."""
    return run_command(entry.under(""), environment, {}).removeprefix(environment.activation)
