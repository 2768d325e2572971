"""The flags that the command sets are the script's, and the values fit them."""

from __future__ import annotations

from collections.abc import Iterator

from labwright.planning.checks.script import start_of
from labwright.planning.checks.subject import Found, Subject
from labwright.planning.ir.compile import fits
from labwright.planning.ir.model import WORKFLOW_FILE, task_file
from labwright.planning.scan import EntryPoint
from labwright.planning.scan.facts import SetBy


def check_flags(subject: Subject) -> Iterator[Found]:
    entry = subject.scan.entry_point(subject.ir.experiment.script)
    if entry is not None:
        yield from _parameters(subject, entry)
        yield from _options(subject, entry)


def _parameters(subject: Subject, entry: EntryPoint) -> Iterator[Found]:
    for parameter in subject.ir.workflow.grid.parameters:
        flag = entry.flag(parameter.flag)
        if flag is None or not flag.is_settable:
            words = f"{entry.path} has no flag {parameter.flag} that can be set."
            yield Found(code="no_such_flag", place=WORKFLOW_FILE, message=words, hint=_known(entry))
            continue
        baseline = subject.ir.workflow.grid.baseline or {}
        tried = [*parameter.values, *([baseline[parameter.name]] if parameter.name in baseline else [])]
        for value in [value for value in tried if not fits(value, flag)]:
            words = f"{parameter.flag} cannot be {value!r}."
            hint = f"It takes {', '.join(map(str, flag.choices))}." if flag.choices else f"It takes {flag.type}."
            yield Found(code="bad_value", place=WORKFLOW_FILE, message=words, hint=hint)


def _options(subject: Subject, entry: EntryPoint) -> Iterator[Found]:
    task = subject.ir.experiment
    known = {word for flag in entry.flags for word in (flag.option, flag.negative, *flag.aliases)}
    command = task.command.removeprefix(subject.scan.environment.activation)
    before, _, after = command.partition(start_of(entry, subject.scan.environment))
    given = [word for word in after.split() if _sets(word, entry)]
    switches = [word for pair in task.switches.values() for words in pair for word in words.split()]
    for word in [*before.split(), *given, *switches]:
        name, equals, _ = word.partition("=")
        if not {name, name + equals} & known:
            words = f"{entry.path} has no option {name}."
            yield Found(code="no_such_flag", place=task_file(task.id), message=words, hint=_known(entry))


def _sets(word: str, entry: EntryPoint) -> bool:
    """Whether it is meant to set something: `--lr`, or `lr=` where the script takes overrides."""
    overrides = any(flag.set_by is SetBy.OVERRIDE for flag in entry.flags)
    return word.startswith("--") or (overrides and "=" in word)


def _known(entry: EntryPoint) -> str:
    return f"It has: {', '.join(flag.name for flag in entry.flags if flag.is_settable) or 'none'}."
