"""Runs that were not started by Labwright but log to it: a script with the SDK in it, started by hand."""

from __future__ import annotations

import json
import os
import shutil

from labwright.compute.lab import Lab
from labwright.compute.launchers.local import EXTERNAL
from labwright.compute.run_folder import make_run_folder
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.run import Run, RunStatus
from labwright.files import create_exclusive
from labwright.processes import ProcessIdentity
from labwright.services.new_run import NewRun, plan_run
from labwright.store import runs
from labwright.store.idempotency import IdempotencyKey, recall, remember


def create(lab: Lab, wanted: NewRun, process: ProcessIdentity, actor: Actor, key: IdempotencyKey | None) -> Run:
    """Tracked from here on: the process holds the claim, a sidecar watches it as it does any other."""
    run = plan_run(lab, wanted, actor).run.evolve(gpus=0, named_gpus=(), gpuwrap_config=None)
    folder = lab.paths.run(run.id).dir
    run = run.move(RunStatus.QUEUED, queued_at=run.created_at)
    run = run.move(RunStatus.LAUNCHING, launched_at=run.created_at, launcher=EXTERNAL, run_dir=folder)
    run = run.move(RunStatus.RUNNING, started_at=now(), pid=process.pid, node=process.host)
    make_run_folder(lab, run)
    os.makedirs(lab.paths.run(run.id).metrics, mode=0o700, exist_ok=True)
    claim = json.dumps({**process.to_dict(), "attempt": 1, "external": True}).encode()
    create_exclusive(lab.paths.run(run.id).claim(1), claim)
    with lab.db.transaction() as tx:
        if answer := recall(tx, key):
            shutil.rmtree(folder)
            return Run.from_dict(json.loads(answer))
        runs.insert(tx, run, str(actor))
        remember(tx, key, run.to_dict())
    if process.is_here:
        lab.local.watch_external(run)
    return run
