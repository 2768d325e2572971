"""From values to a command: the words for each flag, in the order that the script wants them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

from labwright.domain.errors import Invalid
from labwright.planning.scan.facts import EntryPoint, Environment, Flag, SetBy


class Place(str):
    """Stands in a command for the words of a switch, which are put there later."""


def run_command(entry: EntryPoint, environment: Environment, values: Mapping[str, Any]) -> str:
    """What a run executes: activation, variables, the script, its subcommand and its flags."""
    subcommand = entry.subcommand
    before: list[str] = []
    variables: list[str] = []
    after: list[str] = []
    for name, value in values.items():
        flag = _flag(entry, name)
        words = [shlex.quote(word) for word in words_for(flag, value)]
        if flag.set_by is SetBy.ENVIRONMENT:
            variables += words_for_shell(flag, value)
        elif subcommand and not flag.command and entry.style != "lightning":
            before += words
        else:
            after += words
    script = _python_there(entry.command, environment)
    words = [*variables, script, *before, *([subcommand] if subcommand else []), *after]
    return environment.activation + " ".join(words)


def _flag(entry: EntryPoint, name: str) -> Flag:
    named = [flag for flag in entry.flags if name in (flag.name, flag.option, *flag.aliases)]
    fitting = [flag for flag in named if flag.command in ("", entry.subcommand)]
    if not fitting:
        raise Invalid(
            f"{entry.path} has no flag {name}", hint=f"It has: {', '.join(flag.name for flag in entry.flags)}."
        )
    return fitting[-1]


def _python_there(command: str, environment: Environment) -> str:
    """Inside an environment it is `python`; many systems have only `python3`."""
    chosen = environment.chosen
    if chosen and chosen.kind == "system":
        head, _, rest = command.partition("python ")
        return f"{head}{os.path.basename(chosen.python)} {rest}" if rest else command
    return command


def words_for(flag: Flag, value: Any) -> list[str]:
    """The words that give the flag this value; none where leaving it out does."""
    if not flag.is_settable:
        raise Invalid(f"{flag.name} cannot be set from outside", hint=f"It is fixed at {flag.where}: edit it there.")
    if not flag.takes_value and isinstance(value, Place):
        return [value]
    if not flag.takes_value:
        return _switch(flag, on=bool(value))
    many = isinstance(value, list | tuple)
    items = [_typed(item) for item in value] if many else [_typed(value)]
    if flag.set_by is SetBy.OPTION:
        return [flag.option, *items]
    if flag.set_by is SetBy.POSITIONAL:
        return items
    return [f"{flag.option}[{','.join(items)}]" if many else f"{flag.option}{items[0]}"]


def words_for_shell(flag: Flag, value: Any) -> list[str]:
    """`LR=0.1` in front of a command: only the value may be quoted, or the shell takes it for a program."""
    return [f"{flag.option}{shlex.quote(word.removeprefix(flag.option))}" for word in words_for(flag, value)]


def _switch(flag: Flag, *, on: bool) -> list[str]:
    if flag.default is True and not flag.negative:
        return [] if on else [flag.option]  # store_false: the option itself switches off
    if on:
        return [flag.option]
    return [flag.negative] if flag.negative else []


def _typed(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
