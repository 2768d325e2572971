"""A Python step as a tracked run: the task of the approved copy, contained, in the project's interpreter."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.cluster import ClusterType
from labwright.domain.ids import RUN
from labwright.domain.run import Run, RunStatus
from labwright.files import write_json
from labwright.planning.run_mode.execution import Execution, StepFailed
from labwright.planning.run_mode.task_command import TaskPlaces, task_command
from labwright.planning.runs.carriers import note_carrier
from labwright.planning.runs.last_words import last_words
from labwright.sandbox.fences import NO_SANDBOX
from labwright.services.runs import verbs as run_verbs
from labwright.services.runs.new_run import NewRun
from labwright.store import runs
from labwright.workflow import Sealed

_ATTEMPTS = 3  # of a run that was lost with its machine: the task computes, so doing it again harms nobody
_LARGEST_ANSWER = 64 << 20
_SECONDS = 3600.0
_INPUTS, _ANSWER = "inputs.json", "answer.json"


def run_task(execution: Execution, step_id: str, inputs: dict[str, Sealed]) -> Sealed:
    execution.check_approved()
    for attempt in range(_ATTEMPTS):
        run_id = execution.id_for(RUN, step_id, inputs, attempt)
        folder = _open_folder(execution.handle.paths.execution / "steps" / run_id)
        _write_inputs(folder, inputs)
        run = run_verbs.create(execution.lab, _wanted(execution, step_id, run_id, folder), execution.actor)
        note_carrier(execution.handle, step_id, run.id)
        execution.tell("launched", step=step_id, run_id=run.id)
        ended = execution.wait_for(lambda run_id=run.id: _ended(execution.lab, run_id))  # type: ignore[misc]
        if ended.status is not RunStatus.LOST:
            break
    return _answer(execution.lab, ended, folder / _ANSWER)


def _open_folder(folder: Path) -> Path:
    """Open to the user without rights that root's tasks run as; the folders around it let nobody in."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        folder.chmod(0o777)
    return folder


def _write_inputs(folder: Path, inputs: dict[str, Sealed]) -> None:
    write_json(folder / _INPUTS, {name: value.encoded for name, value in inputs.items()})
    (folder / _INPUTS).chmod(0o644)


def _wanted(execution: Execution, step_id: str, run_id: str, folder: Path) -> NewRun:
    handle, handoff = execution.handle, execution.handoff
    places = TaskPlaces(
        workspace=handle.open_copy(handoff.digest),
        package=execution.lab.paths.python_path,
        step=folder,
        files=_open_folder(handle.paths.execution / "files"),
    )
    entrypoint = (handoff.source_root, handoff.module, handoff.symbol)
    return NewRun(
        id=run_id,
        name=step_id,
        command=task_command(
            execution.scan, places, entrypoint, step_id, (_INPUTS, _ANSWER), elsewhere=_on_slurm(execution.lab)
        ),
        plan_id=handle.id,
        tags=("plan", step_id),
        workdir=str(folder),
        gpus=0,
        time_limit_seconds=_SECONDS,
        auto_start=True,
    )


def _on_slurm(lab: Lab) -> bool:
    return lab.cluster.current.type is ClusterType.SLURM


def _ended(lab: Lab, run_id: str) -> Run | None:
    run = runs.get(lab.db.reader(), run_id)
    return run if run.is_terminal else None


def _answer(lab: Lab, run: Run, file: Path) -> Sealed:
    """What the task wrote down is untrusted like the task: read as data, and only if the run ended well."""
    told = _told(file)
    if run.status is RunStatus.FINISHED and told.get("status") == "finished":
        return Sealed(told.get("value"))
    said = str(told.get("error") or "") or run.error or run.status_reason or last_words(lab, run)
    if NO_SANDBOX in (words := last_words(lab, run)):
        said = f"{words}. Install it there, or name nodes that have it by [slurm] constraint in labwright.toml"
    raise StepFailed(f"{run.id} {run.status}: {said[:1000]}".rstrip(": "))


def _told(file: Path) -> dict[str, Any]:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as opened:
            content = opened.read(_LARGEST_ANSWER + 1)
    except OSError:
        return {}
    try:
        found = json.loads(content) if len(content) <= _LARGEST_ANSWER else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
