"""A project with an approved plan, and a process that executes it as a server does, so that it can be killed.

    python -m tests.support.planned_project PROJECT PLAN_ID

It prints each fact as a line of JSON, and the outcome last. A line on its input requests a stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labwright.agent import AgentSession
from labwright.agent.modes.plan import PlanMode
from labwright.compute.engine import RunEngine
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import LabwrightError
from labwright.domain.run import Run
from labwright.planning.record.state import read_state
from labwright.planning.run_mode import PlanOutcome, run_plan
from labwright.planning.scan import scan_project
from labwright.server.opening import open_lab, prepare_state
from labwright.server.server_lock import take_lock
from labwright.services.sweeps.worker import SweepWorker
from labwright.settings import Settings
from labwright.workspace import PlanWorkspaceHandle, Workspace

PERSON = Actor(Scope.PERSON, "ada")


def approved_plan(project: Path, goal: str) -> PlanWorkspaceHandle:
    """Make a plan by the offline rules, and approve it without review."""
    handle = PlanWorkspaceHandle.materialize(Workspace(prepare_state(project).state))
    mode = PlanMode(handle, gate_policy=lambda state: state.validated)
    state = asyncio.run(mode.run(session=AgentSession(), user_input=goal)).mode_state["plan"]
    assert state["ready_for_run"], (state, (handle.paths.dir / "validation/report.md").read_text())
    return handle


def plan_of(project: Path) -> PlanWorkspaceHandle:
    """Return the project's only plan."""
    (folder,) = (project / ".labwright" / "plans").iterdir()
    return PlanWorkspaceHandle(folder)


@contextlib.contextmanager
def working_lab(project: Path, **settings: Any) -> Iterator[Lab]:
    """Open a lab with everything that executes runs, but without HTTP."""
    given = {"lease_dir": str(project.parent / "leases"), "tmux": False, "max_parallel": 2, **settings}
    lab = open_lab(prepare_state(project), Settings(**given), "")
    engine, worker = RunEngine(lab), SweepWorker(lab)
    engine.start()
    worker.start()
    try:
        yield lab
    finally:
        worker.close()
        engine.close()
        lab.db.reader().close()
        lab.db.close()


def runs_of_plan(lab: Lab, handle: PlanWorkspaceHandle) -> list[Run]:
    """Return the plan's runs, oldest first."""
    rows = lab.db.reader().execute("SELECT record FROM runs ORDER BY seq")
    return [run for run in (Run.from_dict(json.loads(row[0])) for row in rows) if run.plan_id == handle.id]


def execute(
    lab: Lab, handle: PlanWorkspaceHandle, facts: list[Any] | None = None, stopping: threading.Event | None = None
) -> PlanOutcome:
    handoff = read_state(handle).handoff
    assert handoff is not None
    told = facts.append if facts is not None else lambda _fact: None
    scan = scan_project(lab.paths.project)
    return run_plan(lab, handle, handoff, scan, PERSON, told, stopping or threading.Event())


def main() -> None:
    project = Path(sys.argv[1])
    take_lock(prepare_state(project))
    stopping = threading.Event()

    def listen() -> None:
        if sys.stdin.readline():
            stopping.set()

    threading.Thread(target=listen, daemon=True).start()
    with working_lab(project) as lab:
        handle, scan = PlanWorkspaceHandle(lab.paths.plans / sys.argv[2]), scan_project(project)
        handoff = read_state(handle).handoff
        assert handoff is not None
        try:
            outcome = run_plan(lab, handle, handoff, scan, PERSON, lambda fact: _say(fact), stopping)
        except LabwrightError as error:
            _say({"refused": error.message})
        else:
            _say({"outcome": asdict(outcome)})


def _say(value: Any) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")  # one write, so that lines of several threads do not mix


if __name__ == "__main__":
    main()
