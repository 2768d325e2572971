"""Recognize commands that should be runs: training, evaluation and launchers.

This is a help for the model, not a fence: the sandbox (`agent/shell`) makes sure that such a command would not work.
Read `reader.py` first. `tests/unit/policy_corpus/` has examples.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from labwright.agent.policy.bash import UNKNOWN, TooMuch
from labwright.agent.policy.reader import FoundRun, Reader
from labwright.domain.run import name_from

__all__ = ["ProposedRun", "ShellVerdict", "judge"]
_LEFT_OVER = re.compile(r"(?:\s*(?<!\\)(?:&|;|\bdisown\b(?:\s+%?\w+)?))+\s*$")
_NOT_IN_A_RUN = re.compile(r"^\s*(?:nohup|setsid)\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedRun:
    """The run to create in place of the command."""

    name: str
    command: str
    folder: str = ""  # below the project

    def to_dict(self) -> dict[str, str]:
        return {"name": self.name, "command": self.command}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellVerdict:
    why: str
    proposal: ProposedRun


def judge(command: str, project: Path) -> ShellVerdict | None:
    """Return the run that the command should be, or None. Reads scripts of the project, and executes nothing."""
    reader = Reader(project)
    try:
        reader.read(command)
    except (TooMuch, RecursionError):
        reader.add("It is too long, or loops too often, to be read", [UNKNOWN])
    if not reader.runs:
        return None
    found = reader.runs[0]
    text, folder = _as_run(command, found, project)
    return ShellVerdict(why=f"{found.why}.", proposal=ProposedRun(name=name_from(text), command=text, folder=folder))


def _as_run(command: str, found: FoundRun, project: Path) -> tuple[str, str]:
    """Return only the found part if that says everything, for example out of a loop; otherwise the whole command."""
    if found.is_all and not any(UNKNOWN in word for word in found.words):
        variables = [f"{name}={shlex.quote(value)}" for name, value in found.variables.items()]
        folder = found.folder.relative_to(project) if found.folder.is_relative_to(project) else Path()
        return " ".join([*variables, shlex.join(found.words)]), "" if folder == Path() else str(folder)
    return _NOT_IN_A_RUN.sub("", _LEFT_OVER.sub("", command.strip())), ""
