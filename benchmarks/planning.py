"""Planning with the offline rules: from a goal to a workspace that is validated, its tests run in the sandbox."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.figure import Figure, at_most, median_of
from labwright.agent import AgentSession
from labwright.agent.modes.plan import PlanMode, PlanWorkspaceHandle
from labwright.sandbox import containment
from labwright.workspace import Workspace

_ROUNDS = 5
_EXAMPLE = Path(__file__).parents[1] / "examples" / "bare-script"
_GOAL = "degree 1, 3, 5 and 9, ridge 0 or 0.01, 2 seeds, lowest test_mse"


def measure() -> list[Figure]:
    how = f"scan, plan, IR, code, tests and every check, in a {containment().kind} sandbox; no rehearsal"
    _planned()
    rounds = [_planned() for _ in range(_ROUNDS)]
    tasks = rounds[0][1]
    return [median_of(f"a plan of {tasks} tasks, validated", "s", [seconds for seconds, _ in rounds], how, at_most(5))]


def _planned() -> tuple[float, int]:
    """Seconds, and how many tasks the plan has."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        shutil.copytree(_EXAMPLE, project)
        began = time.perf_counter()
        handle = PlanWorkspaceHandle.materialize(Workspace(project / ".labwright"))
        done = asyncio.run(PlanMode(handle).run(session=AgentSession(), user_input=_GOAL))
        seconds = time.perf_counter() - began
        assert done.mode_state["plan"]["validated"], done.mode_state
        return seconds, len(list((handle.paths.dir / "ir" / "tasks").glob("*.yaml")))
