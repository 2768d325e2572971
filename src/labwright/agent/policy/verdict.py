"""The verdict on a command, with the run that it should be."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from labwright.agent.policy.reader import Finding, Reader
from labwright.agent.policy.words import UNKNOWN, TooMuch
from labwright.domain.run import name_from

_LEFT_OVER = re.compile(r"(?:\s*(?<!\\)(?:&|;|\bdisown\b(?:\s+%?\w+)?))+\s*$")
_NOT_IN_A_RUN = re.compile(r"^\s*(?:nohup|setsid)\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What to send to `POST /runs`."""

    name: str
    command: str
    folder: str = ""  # below the project

    def to_dict(self) -> dict[str, str]:
        return {"name": self.name, "command": self.command}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    why: str
    proposal: Proposal


def judge(command: str, project: Path) -> Verdict | None:
    """None for what is no run. Reads scripts of the project, and executes nothing."""
    reader = Reader(project)
    try:
        found = next(reader.read(command), None)
    except (TooMuch, RecursionError):
        found = reader.finding("It is too long, or goes round too often, to be read", [UNKNOWN])
    if found is None:
        return None
    text, folder = _as_run(command, found, project)
    return Verdict(why=found.why, proposal=Proposal(name=name_from(text), command=text, folder=folder))


def _as_run(command: str, found: Finding, project: Path) -> tuple[str, str]:
    """What was found alone where that says all, as out of a loop; else the command as it was given."""
    if found.is_all and not any(UNKNOWN in word for word in found.words):
        variables = [f"{name}={shlex.quote(value)}" for name, value in found.variables.items()]
        folder = found.folder.relative_to(project) if found.folder.is_relative_to(project) else Path()
        return " ".join([*variables, shlex.join(found.words)]), "" if folder == Path() else str(folder)
    return _NOT_IN_A_RUN.sub("", _LEFT_OVER.sub("", command.strip())), ""
