"""A lab without a server: the real database and folders, with runs that are marked as ended."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON, SYSTEM, Actor
from labwright.domain.clock import now
from labwright.domain.metrics.points import Points
from labwright.domain.run import Run, RunStatus
from labwright.server.opening import open_lab, prepare_state
from labwright.services.runs import verbs as runs
from labwright.services.runs.new_run import NewRun
from labwright.settings import Settings
from labwright.store import metrics
from labwright.store import runs as stored


@contextmanager
def lab_in(project: Path, **settings: Any) -> Iterator[Lab]:
    project.mkdir(exist_ok=True)
    chosen = Settings(lease_dir=str(project.parent / f"{project.name}-leases"), tmux=False, **settings)
    lab = open_lab(prepare_state(project), chosen, "http://127.0.0.1:1")
    yield lab
    lab.db.close()


def make_run(lab: Lab, name: str, command: str = "true", actor: Actor = PERSON, **fields: Any) -> Run:
    return runs.create(lab, NewRun(command=command, name=name, **fields), actor)


def move(lab: Lab, run: Run, *statuses: RunStatus, **facts: Any) -> Run:
    """Move the run through these statuses as the engine does. The last move gets the facts."""
    for place, status in enumerate(statuses):
        with lab.db.transaction() as tx:
            current = stored.get(tx.connection, run.id)
            given = facts if place == len(statuses) - 1 else {}
            run = stored.change(tx, current, current.move(status, **given), str(SYSTEM))
    return run


def running_run(lab: Lab, name: str = "job") -> str:
    return move(lab, make_run(lab, name), RunStatus.QUEUED, RunStatus.LAUNCHING, RunStatus.RUNNING).id


def ended_run(
    lab: Lab,
    name: str,
    command: str = "true",
    *,
    status: RunStatus = RunStatus.FINISHED,
    series: Mapping[str, Sequence[float]] | None = None,
    output: str = "",
    usage: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Run:
    run = make_run(lab, name, command, **fields)
    return end(lab, run, status, series=series, output=output, usage=dict(usage or {}))


def end(
    lab: Lab,
    run: Run,
    status: RunStatus,
    *,
    series: Mapping[str, Sequence[float]] | None = None,
    output: str = "",
    **facts: Any,
) -> Run:
    """Mark the run as ended, with metrics and output as in its run folder."""
    os.makedirs(lab.paths.run(run.id).dir, exist_ok=True)
    Path(lab.paths.run(run.id).output).write_text(output)
    with lab.db.transaction() as tx:
        for key, values in (series or {}).items():
            points = Points(array("q", range(len(values))), array("d", [1.0] * len(values)), array("d", values))
            metrics.begin(tx, run.id, "sdk", 1, [(key, points)])
    code = 0 if status is RunStatus.FINISHED else 1
    way = (RunStatus.QUEUED, RunStatus.LAUNCHING, RunStatus.RUNNING, status)
    path = way[1:] if run.status is RunStatus.QUEUED else way
    return move(lab, run, *path, **{"exit_code": code, "ended_at": now(), **facts})
