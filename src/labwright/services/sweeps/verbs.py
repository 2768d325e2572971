"""The verbs of sweeps: create, start, stop, pause, resume, retry-failed, extend."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
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
    """Without runs of its own making: they join one by one. With an id, asked for twice it is made once."""
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


def create(lab: Lab, wanted: NewSweep, actor: Actor, key: IdempotencyKey | None = None) -> Sweep:
    """Everything is checked before anything is written; the sweep and all its runs are one transaction."""
    if first := made_before(lab.db.reader(), key, wanted.id, read=Sweep.from_dict, get=sweeps.get):
        return first
    planned = plan_sweep(lab, wanted, actor)
    sweep = planned.sweep
    keep_secrets(lab, sweep.id, planned.secrets)
    try:
        with lab.db.transaction() as tx:
            if answer := recall(tx, key):
                forget_secrets(lab, sweep.id)
                return Sweep.from_dict(json.loads(answer))
            if not wanted.listed:  # those were approved one by one
                found = look_for_twins(tx.connection, sweep, planned.runs, again=wanted.again)
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
            hint = "Use resume." if sweep.status is SweepStatus.PAUSED else "Only a draft can be started."
            raise Conflict(f"Sweep {sweep_id} is {sweep.status}.", hint=hint)
        begun = change(lab, tx, sweep, started(sweep), actor)
        if not begun.is_rationed:
            queue_ready(tx, begun, _ALL, actor)
    lab.wake()
    return begun


_ALL = 1 << 30


def pause(lab: Lab, sweep_id: str, actor: Actor) -> Sweep:
    """Nothing new begins; what runs goes on. The scheduler holds its queue back, the engine what waits in Slurm's."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        return change(lab, tx, sweep, paused(sweep, f"paused by {actor}"), actor)


def paused(sweep: Sweep, reason: str) -> Sweep:
    return sweep.move(SweepStatus.PAUSED, status_reason=reason, **clock_stopped(sweep))


def clock_stopped(sweep: Sweep) -> dict[str, Any]:
    return {"active_seconds": wall_seconds(sweep), "running_since": None}


def resume(lab: Lab, sweep_id: str, actor: Actor, budget: dict[str, Any] | None = None) -> Sweep:
    """Go on after a pause. More budget is a person's to give."""
    if budget and actor.scope is Scope.AGENT:
        raise Forbidden("Only a person raises a budget.", hint="Ask for it; resume without one goes on with what is.")
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        if sweep.status is not SweepStatus.PAUSED:
            raise Conflict(f"Sweep {sweep_id} is {sweep.status}, not paused.", hint="There is nothing to resume.")
        funded = sweep.evolve(budget={**sweep.budget, **(budget or {})})
        short = Supply(lab, funded).cannot_go_on()
        refuse_shortage(f"Sweep {funded.id}", f"labwright sweep resume {funded.id}", _BUDGET_FLAGS, short)
        failures, _ = outcomes(tx.connection, sweep)
        resumed = change(lab, tx, sweep, started(funded, failures_accepted=failures), actor)
        clear_alerts(tx, sweep_id, actor)
    lab.wake()
    return resumed


def stop(lab: Lab, sweep_id: str, actor: Actor) -> Sweep:
    """Ends all its runs: those that have not begun at once, the others by the verb that stops a run."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        if sweep.status in ENDED:
            raise Conflict(f"Sweep {sweep_id} has ended already ({sweep.status}).", hint="There is nothing to stop.")
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
    """Whoever filled it has nothing more to add."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        facts = {**best_facts(tx.connection, sweep), **clock_stopped(sweep), "ended_at": now()}
        return change(lab, tx, sweep, sweep.move(SweepStatus.COMPLETED, **facts), actor)


def _end_waiting(lab: Lab, tx: Transaction, sweep_id: str, actor: Actor) -> list[Run]:
    """Answers those at work, marked as to be stopped."""
    unended, parents = sweeps.unended_runs(tx.connection, sweep_id), sweeps.parents_of_any(tx.connection)
    waiting = [run for run in unended if not run.is_active]
    facts = {"status_reason": _WITH_ITS_SWEEP, "ended_at": now()}
    moved = [(run, run.move(RunStatus.STOPPED, **facts)) for run in waiting if run.id not in parents]
    runs.move_many(tx, moved, str(actor))
    lab.journal.note(tx, (after for _, after in moved))
    lab.journal.note(tx, _end_parents(tx, [run.id for run in waiting if run.id in parents], actor))
    active = [run for run in unended if run.is_active and not run.stop_requested]
    return [runs.change(tx, run, run.evolve(stop_requested=True), str(actor)) for run in active]


def _end_parents(tx: Transaction, run_ids: list[str], actor: Actor) -> Iterator[Run]:
    """Runs that others wait for; one may have ended with another already."""
    for run_id in run_ids:
        run = runs.get(tx.connection, run_id)
        if not run.is_terminal:
            yield end_run(tx, run, RunStatus.STOPPED, reason=_WITH_ITS_SWEEP, actor=str(actor))


@dataclass(frozen=True, slots=True)
class Added:
    """What a verb that gives a sweep more to do has done."""

    sweep: Sweep
    added: int
    already: int = 0  # asked for and there before: linked to the run that is there, not repeated


def retry_failed(lab: Lab, sweep_id: str, actor: Actor) -> Added:
    """New runs for what failed or was lost and was not tried again since. The old ones stay as they are."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        if sweep.status is SweepStatus.DRAFT:
            raise Conflict(f"Sweep {sweep_id} has not been started.", hint="Start it first.")
        _check_not_stopped(sweep)
        failed = sweeps.failed_runs(tx.connection, sweep_id)
        if not failed:
            raise Conflict(f"No run of sweep {sweep_id} is left to retry.", hint="Nothing failed, or it was retried.")
        reopened = _reopened(lab, tx, sweep, actor)
        own = [run for run in failed if run.trial is not None]
        add_runs(lab, tx, again(lab, reopened, own) if own else [], actor)
    for run in failed:
        if run.trial is None:
            run_verbs.rerun(lab, run.id, actor, {}, IdempotencyKey.of(run.id, "retry-failed", b""))
    lab.wake()
    return Added(reopened, len(failed))


def extend(lab: Lab, sweep_id: str, wanted: Extension, actor: Actor) -> Added:
    """More values, seeds, runs or budget. What is done already is not done again."""
    with lab.db.transaction() as tx:
        sweep = sweeps.get(tx.connection, sweep_id)
        if sweep.is_wild:
            raise Conflict(f"Sweep {sweep_id} is wild.", hint="Runs join it with sweep_id; there is nothing to extend.")
        _check_not_stopped(sweep)
        if sweep.plan_id is not None:
            raise Conflict(f"Sweep {sweep_id} belongs to plan {sweep.plan_id}.", hint="Plan the further runs.")
        grown, made, already = extended(tx.connection, sweep, wanted, _opened)
        if grown == sweep and not made:
            raise Invalid("That adds nothing to the sweep.", hint="Give values, seeds, runs or budget it has not.")
        change(lab, tx, sweep, grown, actor, added=len(made), already=already)
        add_runs(lab, tx, made, actor)
    lab.wake()
    return Added(grown, len(made), already)


def _reopened(lab: Lab, tx: Transaction, sweep: Sweep, actor: Actor) -> Sweep:
    opened = _opened(sweep)
    return change(lab, tx, sweep, opened, actor) if opened is not sweep else sweep


def _opened(sweep: Sweep) -> Sweep:
    return started(sweep) if sweep.status is SweepStatus.COMPLETED else sweep


def _check_not_stopped(sweep: Sweep) -> None:
    """Whoever stopped it wanted nothing more of it to run; what it lacks is for a sweep of its own."""
    if sweep.status is SweepStatus.STOPPED:
        raise Conflict(
            f"Sweep {sweep.id} was stopped; nothing in it is started any more.",
            hint="Make a new sweep; pause is for one that is to go on later.",
        )


def carry_out(lab: Lab, alert: Alert, choice: str, actor: Actor) -> None:
    """What somebody answered to a sweep's alert."""
    assert alert.sweep_id is not None
    if choice == STOP:
        stop(lab, alert.sweep_id, actor)
    elif choice == CONTINUE:
        resume(lab, alert.sweep_id, actor)
    elif choice == RAISE:
        sweep = sweeps.get(lab.db.reader(), alert.sweep_id)
        resume(lab, alert.sweep_id, actor, Supply(lab, sweep).raised(alert.rule.removeprefix(BUDGET_RULE)))


def change(lab: Lab, tx: Transaction, before: Sweep, after: Sweep, actor: Actor, **data: Any) -> Sweep:
    """In the database and in the sweep's own file, which a rebuild reads."""
    sweeps.change(tx, before, after, str(actor), **data)
    _write(lab, after)
    return after


def _write(lab: Lab, sweep: Sweep) -> None:
    write_json(lab.paths.sweep(sweep.id), sweep.to_dict(), sync=False)


def clear_alerts(tx: Transaction, sweep_id: str, actor: Actor) -> None:
    for alert in alerts.open_of_sweep(tx.connection, sweep_id):
        alerts.resolve(tx, alert.answered("cleared", str(actor), now()), str(actor))


_CAME_TO_NOTHING = frozenset({RunStatus.FAILED, RunStatus.LOST, RunStatus.STOPPED})
_Label = tuple[str | None, int | None]  # configuration and seed
_SAME_FIELDS = ("workdir", "env")  # of the runs, beside command and parameters


def look_for_twins(
    connection: sqlite3.Connection, sweep: Sweep, planned: Sequence[RunRecord], *, again: bool
) -> list[str]:
    """A warning, or none. Refuses what is there already with the same code, unless it is meant to be done `again`."""
    found = [other for other in sweeps.with_command(connection, sweep.base_command) if _is_like(other, sweep)]
    if not planned:
        return [words for other in found if (words := _compared_adaptive(sweep, other, again))][:1]
    wanted = [_label(json.loads(record.text)) for record in planned] if found else []
    return [words for other in found if (words := _compared(connection, sweep, wanted, other, again))][:1]


def _is_like(other: Sweep, sweep: Sweep) -> bool:
    return other.id != sweep.id and all(other.template.get(name) == sweep.template[name] for name in _SAME_FIELDS)


def _label(run: dict[str, Any]) -> _Label:
    return run["config_hash"], run["seed"]


def _compared(connection: sqlite3.Connection, sweep: Sweep, wanted: list[_Label], other: Sweep, again: bool) -> str:
    rows = sweeps.runs_of(connection, other.id)
    known = {(row.config_hash, row.seed) for row in rows if row.status not in _CAME_TO_NOTHING}
    repeated = sum(label in known for label in wanted)
    if repeated == len(wanted) and _code(sweep) == _code(other) and not again:
        raise _there_already(other, f"{_named(other)} has all {repeated} of these runs already, with the same code.")
    if not repeated:
        return ""
    return (
        f"{repeated} of its {len(wanted)} runs are in {_named(other)} already; to add to that one, extend it instead."
    )


def _compared_adaptive(sweep: Sweep, other: Sweep, again: bool) -> str:
    """Which runs it will make nobody knows yet; the same if all it starts from is the same."""
    if sweep.parameters != other.parameters:
        return ""
    begins_alike = (sweep.sampling_seed, sweep.metric, sweep.seeds) == (other.sampling_seed, other.metric, other.seeds)
    if begins_alike and _code(sweep) == _code(other) and not again:
        words = f"{_named(other)} begins alike, with the same code, and asks for the same configurations."
        raise _there_already(other, words)
    return f"{_named(other)} has the same command and parameters; to add to it, extend it instead."


def _there_already(other: Sweep, words: str) -> Conflict:
    return Conflict(
        words,
        hint=f"See what it found: labwright sweep show {other.id} · add to it: labwright sweep extend {other.id} · "
        "to run all of it once more: --again, or `again` over HTTP.",
    )


def _named(sweep: Sweep) -> str:
    return f"{sweep.id} ({sweep.name})"


def _code(sweep: Sweep) -> Any:
    return (sweep.template.get("snapshot") or {}).get("hash")
