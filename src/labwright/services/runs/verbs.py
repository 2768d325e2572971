"""The verbs of runs: create, start, stop, rerun, change, archive, delete."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.runs.endings import end_run, waits_for
from labwright.compute.runs.folder import forget_secrets, snapshot_root
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.command_line import params_after_change
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.ids import RUN
from labwright.domain.run import Run, RunStatus, name_from
from labwright.domain.search.configurations import SEED
from labwright.domain.sweep import SweepStatus
from labwright.files import write_json
from labwright.services.references import full_id
from labwright.services.runs.new_run import NewRun, name_from_params, plan_run
from labwright.store import alerts, dependencies, metrics, runs, sweeps
from labwright.store.database import Transaction
from labwright.store.idempotency import IdempotencyKey, made_before, recall, remember


def create(lab: Lab, request: NewRun, actor: Actor, key: IdempotencyKey | None = None) -> Run:
    """Check everything, then write the run and its event in one transaction."""
    if first := made_before(lab.db.reader(), key, request.id, read=Run.from_dict, get=runs.get):
        return first  # even if its workdir or sweep no longer exists
    planned = plan_run(lab, request, actor)
    run = planned.run
    planned.keep_secrets(lab)
    try:
        with lab.db.transaction() as tx:
            if answer := recall(tx, key):
                forget_secrets(lab, run.id)
                return Run.from_dict(json.loads(answer))
            run, blocked_by = _check_references(tx, run)
            if request.auto_start:
                run = run.move(RunStatus.QUEUED, queued_at=run.created_at, status_reason=run.status_reason)
            runs.insert(tx, run, str(actor), blocked_by)
            remember(tx, key, run.to_dict())
            lab.journal.note(tx, [run])
    except BaseException:
        forget_secrets(lab, run.id)
        raise
    if request.auto_start:
        lab.run_was_queued()
    return run


def _check_references(tx: Transaction, run: Run) -> tuple[Run, int]:
    """Check the runs and the sweep that the run names.

    Return the run with its warnings, and how many unfinished parents block it.
    """
    warnings = list(run.warnings)
    if run.sweep_id is not None and sweeps.get(tx.connection, run.sweep_id).status is SweepStatus.STOPPED:
        raise Conflict(
            f"Sweep {run.sweep_id} was stopped and starts no more runs.",
            hint="Submit the run without a sweep, or in a new sweep.",
        )
    if run.parent_run_id is not None:
        runs.get(tx.connection, run.parent_run_id)
    parents = [runs.get(tx.connection, parent) for parent in run.after]
    for parent in parents:
        if parent.is_terminal and parent.status is not RunStatus.FINISHED:
            raise Invalid(
                f"Run {parent.id} did not finish ({parent.status}), so no run can wait for it.",
                hint="Rerun it and name the new run in `after`.",
            )
    blocked_by = sum(1 for parent in parents if parent.status is not RunStatus.FINISHED)
    if blocked_by:
        run = run.evolve(status_reason=waits_for(tx, run))
    if idle := [parent.id for parent in parents if parent.status is RunStatus.READY]:
        warnings.append(f"This run waits for {', '.join(idle)}, which has not been started.")
    may_repeat = run.sweep_id is not None and run.config_hash is not None and run.parent_run_id is None
    if may_repeat and (twin := runs.twin(tx.connection, run)):
        warnings.append(f"{twin} in this sweep has the same configuration and seed. Both count in the mean.")
    return run.evolve(warnings=tuple(warnings)) if len(warnings) > len(run.warnings) else run, blocked_by


def start(lab: Lab, run_id: str, actor: Actor) -> Run:
    with lab.db.transaction() as tx:
        run = runs.get(tx.connection, run_id)
        if run.status is not RunStatus.READY:
            raise Conflict(
                f"Run {run_id} is {run.status}. Only a ready run can be started.", hint="Use rerun to run it again."
            )
        started = run.move(RunStatus.QUEUED, queued_at=now(), status_reason=run.status_reason)
        runs.change(tx, run, started, str(actor))
        lab.journal.note(tx, [started])
    lab.wake()
    return started


def stop(lab: Lab, run_id: str, actor: Actor, reason: str = "") -> Run:
    """Stop a run that has not ended. The sidecar ends a running process tree: TERM, grace period, KILL."""

    def stop_now() -> Run:
        with lab.db.transaction() as tx:
            run = runs.get(tx.connection, run_id)
            if run.is_terminal:
                raise Conflict(f"Run {run_id} has already ended ({run.status}).", hint="Use rerun to run it again.")
            if run.is_active:
                stopped = runs.change(tx, run, run.evolve(stop_requested=True), str(actor))
            else:
                why = reason or "stopped before it began"
                stopped = end_run(tx, run, RunStatus.STOPPED, reason=why, actor=str(actor))
                lab.journal.note(tx, [stopped])
        if stopped.is_active:
            request_stop(lab, stopped, actor, reason)
        lab.wake()
        return stopped

    return lab.reserve.use_if_full(stop_now)


def request_stop(lab: Lab, run: Run, actor: Actor, reason: str = "") -> None:
    """Write the stop request into the run folder. The reason is stored with it."""
    paths = lab.paths.run(run.id)
    os.makedirs(paths.control, mode=0o700, exist_ok=True)
    write_json(paths.stop, {"by": str(actor), "at": now(), "reason": reason}, sync=False)
    lab.launcher_for(run).nudge(run)


def rerun(lab: Lab, run_id: str, actor: Actor, changes: dict[str, Any], key: IdempotencyKey | None = None) -> Run:
    """Create a new run with the same spec, except for `changes`. The old run stays as it is."""
    old = get(lab, run_id)
    if old.use_snapshot and old.snapshot and not lab.snapshots.has(old.snapshot["hash"]):
        raise Conflict(
            f"The code snapshot of run {old.id} has been deleted.",
            hint="Submit its command as a new run. It uses the current code.",
        )
    own = {
        "parent_run_id": old.id,
        "snapshot": old.snapshot if old.use_snapshot else None,
        "after": (),
        "approved": None,
        "notes": "",
        "secrets_before": (*old.secret_env, *old.missing_secrets),
        "auto_start": True,
    }
    follows = _changes_with_command(old, changes.get("command") or old.command)
    request = NewRun(**{**old.spec_fields(), **own, **follows, **changes})
    if unknown := sorted(request.secrets.keys() - set(request.secrets_before)):
        raise Invalid(
            f"Run {old.id} had no secret variable called {', '.join(unknown)}.",
            hint="`secrets` takes the names in secret_env and missing_secrets. Use `env` for other variables.",
        )
    return create(lab, request, actor, key)


def _changes_with_command(old: Run, command: str) -> dict[str, Any]:
    """Return the fields that change with the command: params, seed, and the name if it was generated."""
    if command == old.command:
        return {}
    values = {} if old.seed is None else {SEED: old.seed}
    seed = params_after_change(command, values, old.command).get(SEED)
    is_generated = old.name in (name_from(old.command), name_from_params(old.params, old.seed))
    return {
        "params": params_after_change(command, old.params, old.command),
        "seed": seed if isinstance(seed, int) else None,
        "name": None if is_generated else old.name,
    }


def update(lab: Lab, run_id: str, changes: dict[str, Any], actor: Actor) -> Run:
    with lab.db.transaction() as tx:
        run = runs.get(tx.connection, run_id)
        changed = run.evolve(**changes)
        if changed != run:
            runs.change(tx, run, changed, str(actor))
            lab.journal.note(tx, [changed])
    lab.wake()
    return changed


def archive(lab: Lab, run_id: str, actor: Actor) -> Run:
    run = get(lab, run_id)
    if not run.is_terminal:
        raise Conflict(f"Run {run_id} is {run.status}. Only ended runs can be archived.", hint="Stop it first.")
    return update(lab, run_id, {"archived": True, "archived_at": now()}, actor)


def unarchive(lab: Lab, run_id: str, actor: Actor) -> Run:
    return update(lab, run_id, {"archived": False, "archived_at": None}, actor)


def delete(lab: Lab, run_id: str, actor: Actor) -> None:
    """Delete an ended run with its files."""

    def delete_now() -> None:
        run = get(lab, run_id)
        if not run.is_terminal:
            raise Conflict(f"Run {run_id} is {run.status}. Only ended runs can be deleted.", hint="Stop it first.")
        with lab.db.transaction() as tx:
            runs.get(tx.connection, run_id)  # another request may have deleted it
            lab.journal.note_deleted(tx, run_id)
            # Children that failed with this run before launch have no folder: only the journal can record their end.
            children = dependencies.child_runs(tx.connection, run_id)
            lab.journal.note(tx, [child for child in children if child.is_terminal and child.run_dir is None])
            runs.delete(tx, run, str(actor))
            dependencies.forget(tx, run_id)
            alerts.delete_of_run(tx, run_id)
            metrics.delete_of_run(tx, run_id)
        forget_secrets(lab, run_id)
        shutil.rmtree(lab.paths.run(run_id).dir, ignore_errors=True)

    lab.reserve.use_if_full(delete_now)


def get(lab: Lab, run_id: str) -> Run:
    return runs.get(lab.db.reader(), run_id)


def find(lab: Lab, reference: str) -> Run:
    """Return a run by its id, its name, the start of its id, or `last`."""
    return get(lab, full_id(lab, RUN, reference))


def diff(lab: Lab, run_id: str) -> dict[str, Any]:
    """Return how the code has changed since the run was submitted."""
    run = get(lab, run_id)
    if run.snapshot is None:
        raise Conflict(f"Run {run_id} has no code snapshot.", hint="Its workdir is not a project folder.")
    return lab.snapshots.diff(run.snapshot["hash"], snapshot_root(lab, Path(run.workdir))).to_dict()
