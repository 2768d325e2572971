"""Making a run short: by the script's own "max steps" style flag, put into the planned command."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

from labwright.planning.scan import EntryPoint, Flag, Role, SetBy, rehearsal_flags, words_for
from labwright.planning.scan.commands import words_for_shell

_SHELL = set("();<>|&")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortening:
    """A flag by which a run of this command can be made as long as one likes."""

    flag: Flag
    least: Any
    full: float | None = None  # what the plan's runs have, where that is known

    def apply(self, command: str, amount: Any, activation: str) -> str:
        if self.flag.set_by is SetBy.ENVIRONMENT:
            return _with_variable(command, self.flag, amount, activation)
        return f"{command} {shlex.join(words_for(self.flag, amount))}"

    def is_whole(self, amount: Any) -> bool:
        return self.full is not None and amount >= self.full

    def words(self, amount: Any) -> str:
        return " ".join(words_for(self.flag, amount))


def shortenings(entry: EntryPoint, command: str, swept: set[str]) -> list[Shortening]:
    """Best first. Not those that the plan varies itself, nor where the command's shape leaves no place for one."""
    if not _can_be_appended_to(command, entry):
        return []
    return [
        Shortening(flag=flag, least=least, full=_full(flag, command))
        for flag, least in rehearsal_flags(entry.flags)
        if flag.name not in swept and flag.set_by is not SetBy.POSITIONAL and _belongs(flag, entry)
    ]


def scaling(found: list[Shortening]) -> Shortening | None:
    """One of which it is known how long a whole run is: so a rate says how long that will take."""
    counted = [one for one in found if one.flag.role in (Role.STEPS, Role.EPOCHS)]
    return next((one for one in counted if one.full is not None and one.full > one.least), None)


def _full(flag: Flag, command: str) -> float | None:
    """As the command gives it, else the script's own default."""
    given = re.findall(rf"(?<!\S){re.escape(flag.option)}[ =]?([0-9.e+]+)(?!\S)", command)
    value = given[-1] if given else flag.default
    try:
        full = float(value)
    except (TypeError, ValueError):
        return None
    return full if full > 0 else None  # 0 and -1 mean no limit


def _belongs(flag: Flag, entry: EntryPoint) -> bool:
    """At the end of a command with a subcommand only flags of that one can stand."""
    return flag.set_by is SetBy.ENVIRONMENT or entry.style == "lightning" or flag.command == entry.subcommand


def _can_be_appended_to(command: str, entry: EntryPoint) -> bool:
    """Not behind a pipe or a second command: the words would be another program's."""
    rest = command.partition(entry.path)[2]
    try:
        words = list(shlex.shlex(rest, posix=True, punctuation_chars=True))
    except ValueError:
        return False
    return not any(set(word) <= _SHELL for word in words)


def _with_variable(command: str, flag: Flag, amount: Any, activation: str) -> str:
    (assignment,) = words_for_shell(flag, amount)
    given = rf"(?<!\S){re.escape(flag.option)}\S*"
    if re.search(given, command):
        return re.sub(given, lambda _match: assignment, command)
    return f"{activation}{assignment} {command.removeprefix(activation)}"
