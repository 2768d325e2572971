"""The environment that the plan makes: a tracked run in front of everything else, where the project has none yet."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.errors import NotFound
from labwright.domain.ids import RUN, id_of
from labwright.domain.run import Run, RunStatus
from labwright.planning.ir.model import MAKE_ENVIRONMENT, read_ir
from labwright.planning.project.made_environment import is_just_made, note_made
from labwright.planning.record.state import PlanRunHandoff, read_state
from labwright.planning.run_mode.execution import Execution, StepFailed
from labwright.planning.runs.carriers import note_carrier
from labwright.planning.runs.last_words import last_words
from labwright.planning.scan import ProjectScan, scan_project
from labwright.services.runs import verbs as run_verbs
from labwright.services.runs.new_run import NewRun
from labwright.store import runs
from labwright.workflow import Sealed, Step, Store, Task, Workflow
from labwright.workflow.tasks import Options
from labwright.workspace import PlanWorkspaceHandle

_SECONDS = 3600.0
_WORDS = 10


def with_environment(execution: Execution, workflow: Workflow, command: str) -> Workflow:
    """The same workflow, behind a step that makes the environment; as it was where the plan makes none."""
    if not command:
        return workflow
    workflow.steps = [
        Step(MAKE_ENVIRONMENT, _task(execution, command)),
        *(step if step.waits_for() else replace(step, after=(MAKE_ENVIRONMENT,)) for step in workflow.steps),
    ]
    return workflow


def _task(execution: Execution, command: str) -> Task:
    def body() -> Any:
        return Sealed(_make(execution, command))

    # Outside of our package, the engine takes what the body uses of it for its name: a new version of Labwright
    # repeats no finished step.
    body.__module__ = "plan_steps"
    return Task(body, MAKE_ENVIRONMENT, Options())


def forget_lost_environment(execution: Execution, store: Store) -> None:
    """Somebody removed what an earlier execution made: it is made again, though the step had finished."""
    if execution.scan.environment.create:
        with store:
            store.forget(MAKE_ENVIRONMENT)


def _make(execution: Execution, command: str) -> str:
    """Where it is. Asked again, it looks first: what is there is not made twice."""
    execution.scan = scan_project(execution.scan.folder)
    if execution.scan.environment.create == command:
        execution.check_approved()
        ended = _run(execution, command)
        if ended.status is not RunStatus.FINISHED:
            said = last_words(execution.lab, ended, _WORDS) or ended.error or ended.status_reason
            raise StepFailed(f"{ended.id} {ended.status}: {said[-1000:]}".rstrip(": "))
        execution.scan = scan_project(execution.scan.folder)
        _note_just_made(execution.lab, execution.scan, command)
    execution.check_approved()
    chosen = execution.scan.environment.chosen
    if chosen is None:
        raise StepFailed("the command ended well, yet there is no environment where it should be")
    return chosen.path


def settle_environment(lab: Lab, handle: PlanWorkspaceHandle, handoff: PlanRunHandoff, scan: ProjectScan) -> None:
    """A kill may have come between the end of the run and the note of what it made."""
    chosen = scan.environment.chosen
    if chosen is not None and is_just_made(chosen) and read_state(handle).handoff == handoff:
        copy = PlanWorkspaceHandle(handle.open_copy(handoff.digest))
        _note_just_made(lab, scan, read_ir(copy).workflow.environment)


def _note_just_made(lab: Lab, scan: ProjectScan, command: str) -> None:
    """By our run, that is: what somebody made by hand is nobody's promise."""
    chosen = scan.environment.chosen
    if chosen is not None and is_just_made(chosen):
        made = _made(lab, scan, command)
        if made and made[-1].status is RunStatus.FINISHED:
            note_made(chosen, command)


def _run(execution: Execution, command: str) -> Run:
    """The one that is under way, else a new one. Two plans that want the same environment wait for the same run."""
    wanted = NewRun(
        id=_open_id(execution.lab, execution.scan, command),
        name="make the environment",
        command=command,
        plan_id=execution.handle.id,
        tags=("plan", MAKE_ENVIRONMENT),
        workdir=execution.scan.folder,
        gpus=0,
        time_limit_seconds=_SECONDS,
        auto_start=True,
    )
    run = run_verbs.create(execution.lab, wanted, execution.actor)
    note_carrier(execution.handle, MAKE_ENVIRONMENT, run.id)
    execution.tell("launched", step=MAKE_ENVIRONMENT, run_id=run.id)

    def ended() -> Run | None:
        found = runs.get(execution.lab.db.reader(), run.id)
        return found if found.is_terminal else None

    return execution.wait_for(ended)


def _open_id(lab: Lab, scan: ProjectScan, command: str) -> str:
    """Of the run that is under way, else of the next."""
    made = _made(lab, scan, command)
    under_way = bool(made) and not made[-1].is_terminal
    return _id(scan, command, len(made) - under_way)


def _made(lab: Lab, scan: ProjectScan, command: str) -> list[Run]:
    """Every run of the command, oldest first: numbered, so that a restart finds them."""
    found: list[Run] = []
    try:
        while True:
            found.append(runs.get(lab.db.reader(), _id(scan, command, len(found))))
    except NotFound:
        return found


def _id(scan: ProjectScan, command: str, number: int) -> str:
    return id_of(RUN, json.dumps([scan.folder, command, number]).encode())
