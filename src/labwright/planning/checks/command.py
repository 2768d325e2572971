"""The command can run in this project: script, flags, values, activation, a metric that is really reported."""

from __future__ import annotations

from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject
from labwright.planning.compile_ir import fits
from labwright.planning.scan import EntryPoint

_PLACE = "ir/tasks"


def check_command(subject: Subject) -> Iterator[Found]:
    task, grid = subject.ir.experiment, subject.ir.workflow.grid
    entry = subject.scan.entry_point(task.script)
    activation = subject.scan.environment.activation
    if activation and not task.command.startswith(activation):
        words = "The command does not activate the project's environment."
        yield Found(code="no_activation", place=_PLACE, message=words, hint=f"Begin it with `{activation}`.")
    if grid.max_runs is not None and grid.size > grid.max_runs:
        words = f"The grid makes {grid.size} runs; the budget is {grid.max_runs}."
        yield Found(code="over_budget", place="ir/workflow.yaml", message=words)
    if entry is None or task.script not in task.command:
        yield Found(code="no_such_script", place=_PLACE, message=f"{task.script!r} cannot be started here.")
        return
    yield from _parameters(subject, entry)
    if grid.metric.name not in {metric.name for metric in entry.metrics}:
        known = ", ".join(metric.name for metric in entry.metrics)
        words = f"{task.script} does not report {grid.metric.name}."
        yield Found(code="metric_not_produced", place=_PLACE, message=words, hint=f"It reports: {known}.")


def _parameters(subject: Subject, entry: EntryPoint) -> Iterator[Found]:
    for parameter in subject.ir.workflow.grid.parameters:
        flag = entry.flag(parameter.flag)
        if flag is None or not flag.is_settable:
            words = f"{entry.path} has no flag {parameter.flag} that can be set."
            yield Found(code="no_such_flag", place=parameter.name, message=words)
            continue
        for value in [value for value in parameter.values if not fits(value, flag)]:
            yield Found(code="bad_value", place=parameter.name, message=f"{parameter.flag} cannot be {value!r}.")
    yield from _options(subject.ir.experiment.command, entry)


def _options(command: str, entry: EntryPoint) -> Iterator[Found]:
    known = {word for flag in entry.flags for word in (flag.option, flag.negative, *flag.aliases)}
    after = command.partition(entry.path)[2].split()
    for word in [word.partition("=")[0] for word in after if word.startswith("--")]:
        if word not in known:
            yield Found(code="no_such_flag", place=_PLACE, message=f"{entry.path} has no option {word}.")
