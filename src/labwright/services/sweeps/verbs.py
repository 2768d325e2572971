"""The verbs of sweeps: create, start, stop, pause, resume, retry-failed, extend."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.runs.endings import end_run
from labwright.compute.runs.folder import forget_secrets, keep_secrets
from labwright.domain.actor import Actor, Scope
from labwright.domain.alert import Alert
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Forbidden, Invalid
from labwright.domain.ids import SWEEP, new_id
from labwright.domain.run import Run, RunRecord, RunStatus
from labwright.domain.search.budget import refuse_shortage
from labwright.domain.sweep import ENDED, Sweep, SweepMethod, SweepStatus
from labwright.files import write_json
from labwright.services.runs import verbs as run_verbs
from labwright.services.sweeps.extension import Extension, extended
from labwright.services.sweeps.new_sweep import (
    NewSweep,
    add_runs,
    again,
    plan_sweep,
    queue_ready,
    started,
    wall_seconds,
)
from labwright.services.sweeps.results import best_facts, outcomes
from labwright.services.sweeps.supply import Supply
from labwright.store import alerts, runs, sweeps
from labwright.store.database import Transaction
from labwright.store.idempotency import IdempotencyKey, made_before, recall, remember

BUDGET_RULE = "sweep_budget:"  # and which part of it
RAISE, CONTINUE, STOP = "raise", "continue", "stop"
_BUDGET_FLAGS = {"runs": "--runs N", "gpu_hours": "--gpu-hours H", "wall_seconds": "--wall-time TIME"}
_WITH_ITS_SWEEP = "its sweep was stopped"


def create_wild(
    lab: Lab,
    *,
    name: str,
    goal: str,
    chat_session_id: str | None,
    parallel: int | None,
    metric: dict[str, Any] | None,
    actor: Actor,
    key: IdempotencyKey | None = None,
    sweep_id: str | None = None,
) -> Sweep:
    """Create an empty sweep that runs join one by one. With an id, a repeated call returns the first sweep."""
    if first := made_before(lab.db.reader(), key, sweep_id, read=Sweep.from_dict, get=sweeps.get):
        return first
    sweep = Sweep(
        id=sweep_id or new_id(SWEEP),
        name=name,
        goal=goal,
        method=SweepMethod.WILD,
        chat_session_id=chat_session_id,
        parallel=parallel,
        metric=metric,
        created_at=now(),
        created_by=str(actor),
    )
    with lab.db.transaction() as tx:
        if answer := recall(tx, key):
            return Sweep.from_dict(json.loads(answer))
        sweeps.insert(tx, sweep, str(actor))
        remember(tx, key, sweep.to_dict())
        _write(lab, sweep)
    return sweep


def create(lab: Lab, request: NewSweep, actor: Actor, key: IdempotencyKey | None = None) -> Sweep:
    """Check everything, then write the sweep and all its runs in one transaction."""
    if first := made_before(lab.db.reader(), key, request.id, read=Sweep.from_dict, get=sweeps.get):
        return first
    planned = plan_sweep(lab, request, actor)
    sweep = planned.sweep
    keep_secrets(lab, sweep.id, planned.secrets)
    try:
        with lab.db.transaction() as tx:
            if answer := recall(tx, key):
                forget_secrets(lab, sweep.id)
                return Sweep.from_dict(json.loads(answer))
            if not request.listed:  # listed runs were approved one by one
                found = check_duplicates(tx.connection, sweep, planned.runs, again=request.again)
                sweep = replace(sweep, warnings=(*sweep.warnings, *found))
            sweeps.insert(tx, sweep, str(actor), len(planned.runs))
            add_runs(lab, tx, planned.runs, actor)
            remember(tx, key, sweep.to_dict())
            _write(lab, sweep)
    except BaseException:
        forget_secrets(lab, sweep.id)
        lab.paths.sweep(sweep.id).unlink(missing_ok=True)
        raise
    lab.wake()
    return sweep


def start(lab: Lab, sweep_id: str, actor: Actor) -> Sweep:
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        if sweep.status is not SweepStatus.DRAFT:
            hint = "Use resume." if sweep.status is SweepStatus.PAUSED else "Only a draft sweep can be started."
            raise Conflict(f"Sweep {sweep_id} is {sweep.status}.", hint=hint)
        running = change(lab, tx, sweep, started(sweep), actor)
        if not running.is_rationed:
            queue_ready(tx, running, _ALL, actor)
    lab.wake()
    return running


_ALL = 1 << 30


def pause(lab: Lab, sweep_id: str, actor: Actor) -> Sweep:
    """Start no more runs; running ones continue. The engine holds jobs that are pending in Slurm."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        return change(lab, tx, sweep, paused(sweep, f"paused by {actor}"), actor)


def paused(sweep: Sweep, reason: str) -> Sweep:
    return sweep.move(SweepStatus.PAUSED, status_reason=reason, **clock_stopped(sweep))


def clock_stopped(sweep: Sweep) -> dict[str, Any]:
    return {"active_seconds": wall_seconds(sweep), "running_since": None}


def resume(lab: Lab, sweep_id: str, actor: Actor, budget: dict[str, Any] | None = None) -> Sweep:
    """Resume a paused sweep. Only a person may raise the budget."""
    if budget and actor.scope is Scope.AGENT:
        raise Forbidden("Only a person may raise a budget.", hint="Ask the user, or resume without a new budget.")
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        if sweep.status is not SweepStatus.PAUSED:
            raise Conflict(
                f"Sweep {sweep_id} is {sweep.status}, not paused.", hint="Only a paused sweep can be resumed."
            )
        funded = sweep.evolve(budget={**sweep.budget, **(budget or {})})
        short = Supply(lab, funded).cannot_go_on()
        refuse_shortage(f"Sweep {funded.id}", f"labwright sweep resume {funded.id}", _BUDGET_FLAGS, short)
        failures, _ = outcomes(tx.connection, sweep)
        resumed = change(lab, tx, sweep, started(funded, failures_accepted=failures), actor)
        clear_alerts(tx, sweep_id, actor)
    lab.wake()
    return resumed


def stop(lab: Lab, sweep_id: str, actor: Actor) -> Sweep:
    """Stop the sweep and all its runs. Waiting runs end at once; active ones get a stop request."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        if sweep.status in ENDED:
            raise Conflict(
                f"Sweep {sweep_id} has already ended ({sweep.status}).",
                hint="Only a sweep that has not ended can be stopped.",
            )
        ended = sweep.move(SweepStatus.STOPPED, ended_at=now(), **clock_stopped(sweep))
        change(lab, tx, sweep, ended, actor)
        active = _end_waiting(lab, tx, sweep_id, actor)
        clear_alerts(tx, sweep_id, actor)
    for run in active:
        run_verbs.request_stop(lab, run, actor, _WITH_ITS_SWEEP)
    forget_secrets(lab, sweep_id)
    lab.wake()
    return ended


def complete_wild(lab: Lab, sweep_id: str, actor: Actor) -> Sweep:
    """Complete a wild sweep: its creator adds no more runs."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        facts = {**best_facts(tx.connection, sweep), **clock_stopped(sweep), "ended_at": now()}
        return change(lab, tx, sweep, sweep.move(SweepStatus.COMPLETED, **facts), actor)


def _end_waiting(lab: Lab, tx: Transaction, sweep_id: str, actor: Actor) -> list[Run]:
    """Stop the waiting runs of the sweep. Return the active ones, marked with a stop request."""
    unended, parents = sweeps.unended_runs(tx.connection, sweep_id), sweeps.parents_of_any(tx.connection)
    waiting = [run for run in unended if not run.is_active]
    facts = {"status_reason": _WITH_ITS_SWEEP, "ended_at": now()}
    moved = [(run, run.move(RunStatus.STOPPED, **facts)) for run in waiting if run.id not in parents]
    runs.move_many(tx, moved, str(actor))
    lab.journal.note(tx, (after for _, after in moved))
    ended = []
    for run_id in [run.id for run in waiting if run.id in parents]:
        run = runs.get(tx.connection, run_id)
        if not run.is_terminal:  # it may have ended together with another parent
            ended.append(end_run(tx, run, RunStatus.STOPPED, reason=_WITH_ITS_SWEEP, actor=str(actor)))
    lab.journal.note(tx, ended)
    active = [run for run in unended if run.is_active and not run.stop_requested]
    return [runs.change(tx, run, run.evolve(stop_requested=True), str(actor)) for run in active]


@dataclass(frozen=True, slots=True)
class Added:
    """The result of a verb that adds runs to a sweep."""

    sweep: Sweep
    added: int
    already: int = 0  # requested runs that the sweep already has


def retry_failed(lab: Lab, sweep_id: str, actor: Actor) -> Added:
    """Create new runs for failed and lost ones that have not been retried. The old ones stay as they are."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        if sweep.status is SweepStatus.DRAFT:
            raise Conflict(f"Sweep {sweep_id} has not been started.", hint="Start it first.")
        _check_not_stopped(sweep)
        failed = sweeps.failed_runs(tx.connection, sweep_id)
        if not failed:
            raise Conflict(f"Sweep {sweep_id} has no run to retry.", hint="No run failed, or all were retried.")
        reopened = _opened(sweep)
        if reopened is not sweep:
            change(lab, tx, sweep, reopened, actor)
        own = [run for run in failed if run.trial is not None]
        add_runs(lab, tx, again(lab, reopened, own) if own else [], actor)
    for run in failed:
        if run.trial is None:
            run_verbs.rerun(lab, run.id, actor, {}, IdempotencyKey.of(run.id, "retry-failed", b""))
    lab.wake()
    return Added(reopened, len(failed))


def extend(lab: Lab, sweep_id: str, request: Extension, actor: Actor) -> Added:
    """Add values, seeds, runs or budget. Existing runs are not repeated."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        if sweep.is_wild:
            raise Conflict(f"Sweep {sweep_id} is wild.", hint="Submit runs with its sweep_id instead.")
        _check_not_stopped(sweep)
        if sweep.plan_id is not None:
            raise Conflict(f"Sweep {sweep_id} belongs to plan {sweep.plan_id}.", hint="Change the plan instead.")
        grown, made, already = extended(tx.connection, sweep, request, _opened)
        if grown == sweep and not made:
            raise Invalid("The request adds nothing to the sweep.", hint="Send new values, seeds, runs or budget.")
        change(lab, tx, sweep, grown, actor, added=len(made), already=already)
        add_runs(lab, tx, made, actor)
    lab.wake()
    return Added(grown, len(made), already)


def _opened(sweep: Sweep) -> Sweep:
    """Return the sweep, running again if it was completed."""
    return started(sweep) if sweep.status is SweepStatus.COMPLETED else sweep


def _check_not_stopped(sweep: Sweep) -> None:
    """Refuse to add runs to a stopped sweep."""
    if sweep.status is SweepStatus.STOPPED:
        raise Conflict(
            f"Sweep {sweep.id} was stopped and starts no more runs.",
            hint="Create a new sweep. Next time, use pause if it shall continue later.",
        )


def carry_out(lab: Lab, alert: Alert, choice: str, actor: Actor) -> None:
    """Carry out the user's answer to an alert of a sweep."""
    assert alert.sweep_id is not None
    if choice == STOP:
        stop(lab, alert.sweep_id, actor)
    elif choice == CONTINUE:
        resume(lab, alert.sweep_id, actor)
    elif choice == RAISE:
        sweep = sweeps.get(lab.db.reader(), alert.sweep_id)
        resume(lab, alert.sweep_id, actor, Supply(lab, sweep).raised(alert.rule.removeprefix(BUDGET_RULE)))


def change(lab: Lab, tx: Transaction, before: Sweep, after: Sweep, actor: Actor, **data: Any) -> Sweep:
    """Store the sweep in the database and in its file, which a rebuild reads."""
    sweeps.change(tx, before, after, str(actor), **data)
    _write(lab, after)
    return after


def _write(lab: Lab, sweep: Sweep) -> None:
    write_json(lab.paths.sweep(sweep.id), sweep.to_dict(), sync=False)


def clear_alerts(tx: Transaction, sweep_id: str, actor: Actor) -> None:
    for alert in alerts.open_of_sweep(tx.connection, sweep_id):
        alerts.resolve(tx, alert.answered("cleared", str(actor), now()), str(actor))


_WITHOUT_RESULT = frozenset({RunStatus.FAILED, RunStatus.LOST, RunStatus.STOPPED})
_Label = tuple[str | None, int | None]  # hash of the configuration, seed
_SAME_FIELDS = ("workdir", "env")  # of the runs, besides command and parameters


def check_duplicates(
    connection: sqlite3.Connection, sweep: Sweep, planned: Sequence[RunRecord], *, again: bool
) -> list[str]:
    """Return a warning if another sweep has some of these runs. Refuse if it has all of them, unless `again` is set."""
    similar = [
        other
        for other in sweeps.with_command(connection, sweep.base_command)
        if other.id != sweep.id and all(other.template.get(name) == sweep.template[name] for name in _SAME_FIELDS)
    ]
    if not planned:
        warnings = [_compare_adaptive(sweep, other, again) for other in similar]
    else:
        planned_runs = [json.loads(record.text) for record in planned] if similar else []
        labels = [(run["config_hash"], run["seed"]) for run in planned_runs]
        warnings = [_compare_runs(connection, sweep, labels, other, again) for other in similar]
    return [warning for warning in warnings if warning][:1]


def _compare_runs(connection: sqlite3.Connection, sweep: Sweep, labels: list[_Label], other: Sweep, again: bool) -> str:
    rows = sweeps.runs_of(connection, other.id)
    known = {(row.config_hash, row.seed) for row in rows if row.status not in _WITHOUT_RESULT}
    repeated = sum(label in known for label in labels)
    if repeated == len(labels) and _code(sweep) == _code(other) and not again:
        raise _already_exists(other, f"{_named(other)} already has all {repeated} of these runs, with the same code.")
    if not repeated:
        return ""
    return f"{repeated} of its {len(labels)} runs are already in {_named(other)}. Use extend to add runs to that sweep."


def _compare_adaptive(sweep: Sweep, other: Sweep, again: bool) -> str:
    """Compare two adaptive sweeps, whose runs are not known yet, by their start conditions."""
    if sweep.parameters != other.parameters:
        return ""
    starts = [(one.sampling_seed, one.metric, one.seeds) for one in (sweep, other)]
    if starts[0] == starts[1] and _code(sweep) == _code(other) and not again:
        message = f"{_named(other)} has the same start conditions and code, so it proposes the same configurations."
        raise _already_exists(other, message)
    return f"{_named(other)} has the same command and parameters. Use extend to add runs to that sweep."


def _already_exists(other: Sweep, message: str) -> Conflict:
    return Conflict(
        message,
        hint=f"Show its results: labwright sweep show {other.id} · extend it: labwright sweep extend {other.id} · "
        "run everything again: --again, or `again` over HTTP.",
    )


def _named(sweep: Sweep) -> str:
    return f"{sweep.id} ({sweep.name})"


def _code(sweep: Sweep) -> Any:
    return (sweep.template.get("snapshot") or {}).get("hash")
