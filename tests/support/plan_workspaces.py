"""Plans of the example projects, made by the offline rules."""

from __future__ import annotations

import asyncio
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labwright.agent import AgentSession
from labwright.agent.modes import PlanMode
from labwright.agent.modes.plan import PlanWorkspaceHandle
from labwright.workspace import Workspace

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["argparse-digits", "bare-script", "click-ngrams", "dataclass-moons", "typer-walk", "yaml-config"]


@dataclass
class Planned:
    project: Path
    goal: str
    mode: PlanMode

    def run(self, events: list[Any] | None = None) -> dict[str, Any]:
        on_event = None if events is None else events.append
        asked = self.mode.run(session=AgentSession(), user_input=self.goal, on_event=on_event)
        return dict(asyncio.run(asked).mode_state["plan"])

    @property
    def folder(self) -> Path:
        return self.mode.handle.paths.dir


def planned(folder: Path, name: str, goal: str = "", **options: Any) -> Planned:
    """Plan the goal from the example's README, or the given one, with the options of plan mode."""
    project = folder / "project"
    shutil.copytree(EXAMPLES / name, project)
    handle = PlanWorkspaceHandle.materialize(Workspace(project / ".labwright"))
    words = goal or re.findall(r"^> (.+)$", (project / "README.md").read_text(), re.MULTILINE)[0]
    return Planned(project, words, PlanMode(handle, **options))
