"""The verbs of runs: create, start, stop, rerun, change, archive, delete."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.runs.endings import end_run, waits_for
from labwright.compute.runs.folder import forget_secrets, snapshot_root
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.command_line import params_after_change
from labwright.domain.errors import Conflict, Invalid, NotFound
from labwright.domain.run import Run, RunStatus, name_from
from labwright.domain.search.configurations import SEED
from labwright.domain.sweep import Sweep, SweepStatus
from labwright.files import write_json
from labwright.services.runs.new_run import NewRun, name_from_params, plan_run
from labwright.store import alerts, dependencies, metrics, runs, sweeps
from labwright.store.database import Transaction
from labwright.store.idempotency import IdempotencyKey, made_before, recall, remember


def create(lab: Lab, wanted: NewRun, actor: Actor, key: IdempotencyKey | None = None) -> Run:
    """Everything is checked before anything is written; the run and its event are one transaction."""
    if first := made_before(lab.db.reader(), key, wanted.id, read=Run.from_dict, get=runs.get):
        return first  # also when what it needs is gone by now
    planned = plan_run(lab, wanted, actor)
    run = planned.run
    planned.keep_secrets(lab)
    try:
        with lab.db.transaction() as tx:
            if answer := recall(tx, key):
                forget_secrets(lab, run.id)
                return Run.from_dict(json.loads(answer))
            blocked_by = _check_references(tx, run)
            if blocked_by:
                run = run.evolve(status_reason=waits_for(tx, run), warnings=_with_idle_parents(tx, run))
            if twins := _same_in_sweep(tx, run):
                run = run.evolve(warnings=(*run.warnings, *twins))
            if wanted.auto_start:
                run = run.move(RunStatus.QUEUED, queued_at=run.created_at, status_reason=run.status_reason)
            runs.insert(tx, run, str(actor), blocked_by)
            remember(tx, key, run.to_dict())
            lab.journal.note(tx, [run])
    except BaseException:
        forget_secrets(lab, run.id)
        raise
    if wanted.auto_start:
        lab.run_was_queued()
    return run


def _same_in_sweep(tx: Transaction, run: Run) -> list[str]:
    """A repetition that nobody meant counts as another seed; one that was asked for has its parent."""
    if run.sweep_id is None or run.config_hash is None or run.parent_run_id is not None:
        return []
    twin = runs.twin(tx.connection, run)
    return [f"{twin} of this sweep has the same configuration and seed; both count in its means."] if twin else []


def _check_references(tx: Transaction, run: Run) -> int:
    """Answers for how many runs this one has to wait."""
    if run.sweep_id is not None:
        _check_sweep(sweeps.get(tx.connection, run.sweep_id))
    if run.parent_run_id is not None:
        runs.get(tx.connection, run.parent_run_id)
    parents = [runs.get(tx.connection, parent) for parent in run.after]
    for parent in parents:
        if parent.is_terminal and parent.status is not RunStatus.FINISHED:
            raise Invalid(
                f"Run {parent.id} {parent.status}; nothing can run after it.",
                hint="Rerun it first and name the new run in `after`.",
            )
    return sum(1 for parent in parents if parent.status is not RunStatus.FINISHED)


def _check_sweep(sweep: Sweep) -> None:
    if sweep.status is SweepStatus.STOPPED:
        raise Conflict(
            f"Sweep {sweep.id} was stopped; nothing in it is started.",
            hint="Submit the command as a run without a sweep, or in a new one.",
        )


def _with_idle_parents(tx: Transaction, run: Run) -> tuple[str, ...]:
    idle = [i for i in run.after if runs.get(tx.connection, i).status is RunStatus.READY]
    words = f"{', '.join(idle)} has not been started; this run waits until it has finished."
    return (*run.warnings, words) if idle else run.warnings


def start(lab: Lab, run_id: str, actor: Actor) -> Run:
    with lab.db.transaction() as tx:
        run = runs.get(tx.connection, run_id)
        if run.status is not RunStatus.READY:
            raise Conflict(f"Run {run_id} is {run.status}; only a run that is ready can be started.", hint="Use rerun.")
        started = run.move(RunStatus.QUEUED, queued_at=now(), status_reason=run.status_reason)
        runs.change(tx, run, started, str(actor))
        lab.journal.note(tx, [started])
    lab.wake()
    return started


def stop(lab: Lab, run_id: str, actor: Actor, reason: str = "") -> Run:
    """Works in every status that is not an end. A running tree is ended by its sidecar: TERM, grace, KILL."""
    return lab.reserve.use_if_full(lambda: _stop(lab, run_id, actor, reason))


def _stop(lab: Lab, run_id: str, actor: Actor, reason: str) -> Run:
    with lab.db.transaction() as tx:
        run = runs.get(tx.connection, run_id)
        if run.is_terminal:
            raise Conflict(f"Run {run_id} has ended already ({run.status}).", hint="There is nothing to stop.")
        if run.is_active:
            stopped = runs.change(tx, run, run.evolve(stop_requested=True), str(actor))
        else:
            words = reason or "stopped before it began"
            stopped = end_run(tx, run, RunStatus.STOPPED, reason=words, actor=str(actor))
            lab.journal.note(tx, [stopped])
    if stopped.is_active:
        request_stop(lab, stopped, actor, reason)
    lab.wake()
    return stopped


def request_stop(lab: Lab, run: Run, actor: Actor, reason: str = "") -> None:
    """The reason goes with it, so that the run's own folder tells why it ended."""
    paths = lab.paths.run(run.id)
    os.makedirs(paths.control, mode=0o700, exist_ok=True)
    write_json(paths.stop, {"by": str(actor), "at": now(), "reason": reason}, sync=False)
    lab.launcher_for(run).nudge(run)


def rerun(lab: Lab, run_id: str, actor: Actor, changes: dict[str, Any], key: IdempotencyKey | None = None) -> Run:
    """A new run of the same thing, with what was asked to be different. The old one stays as it is."""
    old = get(lab, run_id)
    _check_code_is_kept(lab, old)
    wanted = NewRun(
        name=old.name,
        command=old.command,
        workdir=old.workdir,
        sweep_id=old.sweep_id,
        parent_run_id=old.id,
        chat_session_id=old.chat_session_id,
        plan_id=old.plan_id,
        gpuwrap_config=old.gpuwrap_config,
        gpus=old.gpus,
        cpus=old.cpus,
        memory_mb=old.memory_mb,
        time_limit_seconds=old.time_limit_seconds,
        env=old.env,
        env_hash=old.env_hash,
        secrets_before=(*old.secret_env, *old.missing_secrets),
        tags=old.tags,
        params=old.params,
        seed=old.seed,
        priority=old.priority,
        tty=old.tty,
        use_snapshot=old.use_snapshot,
        snapshot=old.snapshot if old.use_snapshot else None,
        nodes=old.nodes,
        slurm=old.slurm,
        auto_start=True,
    )
    asked = replace(wanted, **_with_command(old, changes.get("command") or old.command), **changes)
    if unknown := sorted(asked.secrets.keys() - set(asked.secrets_before)):
        raise Invalid(
            f"{old.id} had no secret variable called {', '.join(unknown)}.",
            hint="Send only names of its secret_env or missing_secrets; env takes others.",
        )
    return create(lab, asked, actor, key)


def _with_command(old: Run, command: str) -> dict[str, Any]:
    """What follows from another command: parameters, seed, and a name that was made from what is no longer so."""
    if command == old.command:
        return {}
    values = {} if old.seed is None else {SEED: old.seed}
    seed = params_after_change(command, values, old.command).get(SEED)
    is_made_up = old.name in (name_from(old.command), name_from_params(old.params, old.seed))
    return {
        "params": params_after_change(command, old.params, old.command),
        "seed": seed if isinstance(seed, int) else None,
        "name": None if is_made_up else old.name,
    }


def _check_code_is_kept(lab: Lab, old: Run) -> None:
    """A run of a snapshot that gc has collected could never begin."""
    if old.use_snapshot and old.snapshot and not lab.snapshots.has(old.snapshot["hash"]):
        raise Conflict(
            f"The code that {old.id} ran with is no longer kept.",
            hint="Submit its command as a new run: it takes the code as it is now.",
        )


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
        raise Conflict(f"Run {run_id} is {run.status}; only ended runs can be archived.", hint="Stop it first.")
    return update(lab, run_id, {"archived": True, "archived_at": now()}, actor)


def unarchive(lab: Lab, run_id: str, actor: Actor) -> Run:
    return update(lab, run_id, {"archived": False, "archived_at": None}, actor)


def delete(lab: Lab, run_id: str, actor: Actor) -> None:
    """Terminal runs only."""
    lab.reserve.use_if_full(lambda: _delete(lab, run_id, actor))


def _delete(lab: Lab, run_id: str, actor: Actor) -> None:
    run = get(lab, run_id)
    if not run.is_terminal:
        raise Conflict(f"Run {run_id} is {run.status}; only ended runs can be deleted.", hint="Stop it first.")
    with lab.db.transaction() as tx:
        runs.get(tx.connection, run_id)  # somebody else may have been faster
        lab.journal.note_deleted(tx, run_id)
        lab.journal.note(tx, _ended_with(tx, run_id))
        runs.delete(tx, run, str(actor))
        dependencies.forget(tx, run_id)
        alerts.delete_of_run(tx, run_id)
        metrics.delete_of_run(tx, run_id)
    forget_secrets(lab, run_id)
    shutil.rmtree(lab.paths.run(run_id).dir, ignore_errors=True)


def _ended_with(tx: Transaction, parent: str) -> list[Run]:
    """Runs that failed with this one and have no folder to say so: without their parent nothing else tells it."""
    children = dependencies.child_runs(tx.connection, parent)
    return [child for child in children if child.is_terminal and child.run_dir is None]


def get(lab: Lab, run_id: str) -> Run:
    return runs.get(lab.db.reader(), run_id)


def find(lab: Lab, reference: str) -> Run:
    """By id, the beginning of an id, name, or `last`."""
    try:
        return get(lab, reference)
    except NotFound:
        return get(lab, runs.find(lab.db.reader(), reference))


def diff(lab: Lab, run_id: str) -> dict[str, Any]:
    """What changed in the code since the run was submitted."""
    run = get(lab, run_id)
    if run.snapshot is None:
        raise Conflict(f"Run {run_id} has no code snapshot.", hint="Its workdir is not a project's folder.")
    return lab.snapshots.diff(run.snapshot["hash"], snapshot_root(lab, Path(run.workdir))).to_dict()
