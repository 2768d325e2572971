"""External runs: scripts that the user starts by hand and that log with the SDK."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from pathlib import Path

from labwright.compute.lab import Lab
from labwright.compute.runs.folder import make_run_folder
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, LabwrightError
from labwright.domain.run import EXTERNAL, Run, RunStatus
from labwright.files import create_exclusive, read_json, write_json
from labwright.processes import ProcessIdentity
from labwright.services.runs.new_run import NewRun, plan_run, take_snapshot
from labwright.store import runs
from labwright.store.idempotency import IdempotencyKey, recall, remember

log = logging.getLogger(__name__)


def create(
    lab: Lab,
    request: NewRun,
    process: ProcessIdentity,
    actor: Actor,
    key: IdempotencyKey | None,
    answer_by: float | None,
) -> Run:
    """Start tracking a process: it holds the claim, and a sidecar watches it.

    `keep_code` takes the snapshot later, since the script waits for this response.
    """
    planned = plan_run(lab, request, actor, with_code=False)
    run = planned.run.evolve(gpus=0, named_gpus=(), gpuwrap_config=None)
    folder = lab.paths.run(run.id).dir
    run = run.move(RunStatus.QUEUED, queued_at=run.created_at)
    run = run.move(RunStatus.LAUNCHING, launched_at=run.created_at, launcher=EXTERNAL, run_dir=folder)
    run = run.move(RunStatus.RUNNING, started_at=now(), pid=process.pid, node=process.host)
    make_run_folder(lab, run)
    os.makedirs(lab.paths.run(run.id).metrics, mode=0o700, exist_ok=True)
    claim = json.dumps({**process.to_dict(), "attempt": 1, "external": True}).encode()
    create_exclusive(lab.paths.run(run.id).claim(1), claim)
    with lab.db.transaction() as tx:
        tx.on_rollback.append(lambda: shutil.rmtree(folder))
        if answer := recall(tx, key):
            shutil.rmtree(folder)
            return Run.from_dict(json.loads(answer))
        if answer_by is not None and time.time() > answer_by:
            raise Conflict(
                "The script no longer waits for this run.", hint="It logs into a folder. Use labwright import."
            )
        runs.insert(tx, run, str(actor))
        remember(tx, key, run.to_dict())
    if process.is_here:
        lab.local.watch_external(run)
    return run


def keep_code(lab: Lab, run: Run) -> None:
    """Take the code snapshot and record it in the database and in the run folder, which a rebuild reads."""
    try:
        snapshot = take_snapshot(lab, Path(run.workdir))
        with lab.db.transaction() as tx:
            current = runs.get(tx.connection, run.id)
            paths = lab.paths.run(run.id)
            spec = read_json(paths.spec)
            spec["run"]["snapshot"] = snapshot
            write_json(paths.spec, spec, sync=False)
            runs.change(tx, current, current.evolve(snapshot=snapshot), "system")
    except (LabwrightError, OSError) as error:  # full disk, or the run was deleted; the run has no snapshot
        log.warning("no code snapshot for %s: %s", run.id, error)
