"""The verbs of wild loops: start, pause, resume, stop, steer. Each writes down what is wanted and nothing else.

Nothing here runs or proposes anything: `worker.py` sees that a loop is at work, and lets the engine take the next step.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from labwright.agent.wild.spending import Purse, clock_stopped, used
from labwright.agent.wild.wanted import NewWild
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Forbidden, Invalid
from labwright.domain.ids import SWEEP, WILD, id_of, new_id
from labwright.domain.search.budget import refuse_shortage
from labwright.domain.sweep import SweepStatus
from labwright.domain.wild import AT_WORK, Iteration, IterationStatus, IterationVerdict, Wild, WildStatus
from labwright.files import write_json
from labwright.services.sweeps import verbs as sweep_verbs
from labwright.store import alerts, sessions, sweeps
from labwright.store import wild as stored
from labwright.store.database import Transaction
from labwright.store.idempotency import IdempotencyKey, made_before, recall, remember

RULES = "rules"
_RUNS = 40  # a loop without a word about it ends all the same
_BUDGET_FLAGS = {"runs": "--max-runs N", "gpu_hours": "--budget-gpu-hours H", "wall_seconds": "--wall-time TIME"}
_NAME_LENGTH = 80
_NO_CARDS = "Its runs use no GPU, so the budget in GPU-hours never runs out."
_MOST_STEERING = 200


def start(lab: Lab, wanted: NewWild, search: str, actor: Actor, key: IdempotencyKey | None = None) -> Wild:
    """What the goal leaves open is asked for, and nothing is made then."""
    if first := made_before(lab.db.reader(), key, wanted.id, read=Wild.from_dict, get=stored.get):
        return first
    if wanted.session_id is not None:
        sessions.get(lab.db.reader(), wanted.session_id)
    from labwright.agent.wild.goal import understand  # here and below: a server that is idle needs no scan
    from labwright.agent.wild.protect import protect
    from labwright.planning.scan import scan_project

    scan = scan_project(lab.paths.project)
    found = understand(wanted, scan)
    at, wild_id = now(), wanted.id or new_id(WILD)
    budget = {"runs": _RUNS, **found.budget, **wanted.budget}
    wild = Wild(
        id=wild_id,
        goal=wanted.goal,
        session_id=wanted.session_id,
        sweep_id=id_of(SWEEP, wild_id.encode()),
        script=found.script,
        metric=found.metric,
        criterion=found.criterion,
        parameters=found.parameters,
        fixed=found.fixed,
        seeds=found.seeds,
        gpus=found.gpus,
        parallel=found.parallel,
        search=search,
        budget=budget,
        first_budget=budget,
        protected=protect(lab.paths.project, scan, wanted.protect),
        notes=found.notes,
        created_at=at,
        created_by=str(actor),
        running_since=at,
    )
    gpus = Purse(lab, wild).gpus  # more cards than there are is told now, not at the first run
    if "gpu_hours" in wanted.budget and not gpus:
        wild = wild.evolve(notes=(*wild.notes, _NO_CARDS))
    return _insert(lab, wild, actor, key)


def _insert(lab: Lab, wild: Wild, actor: Actor, key: IdempotencyKey | None) -> Wild:
    """The sweep first: it has its id from the loop, so a kill in between leaves one to be found again."""
    sweep_verbs.create_wild(
        lab,
        name=f"wild: {wild.goal}"[:_NAME_LENGTH],
        goal=wild.goal,
        chat_session_id=wild.session_id,
        parallel=wild.parallel,
        metric=wild.metric,
        actor=actor,
        sweep_id=wild.sweep_id,
    )
    try:
        with lab.db.transaction() as tx:
            if answer := recall(tx, key):
                return Wild.from_dict(json.loads(answer))
            stored.insert(tx, wild, str(actor))
            remember(tx, key, wild.to_dict())
            _write(lab, wild)
    except BaseException:
        lab.paths.wild_loop(wild.id).unlink(missing_ok=True)
        raise
    return wild


def get(lab: Lab, wild_id: str) -> Wild:
    return stored.get(lab.db.reader(), wild_id)


def page(lab: Lab, limit: int, before: int | None) -> tuple[list[Wild], int | None]:
    """Newest first."""
    return stored.page(lab.db.reader(), limit, before)


def view(lab: Lab, wild: Wild) -> dict[str, Any]:
    """With what it has used by now, and the runs that are there."""
    made = [_iteration_now(lab, one).evolve(run_ids=one.run_ids[: one.made]).to_dict() for one in wild.iterations]
    return {**wild.to_dict(), "iterations": made, "used": wild.used if wild.is_ended else used(lab, wild)}


def _iteration_now(lab: Lab, iteration: Iteration) -> Iteration:
    """While a loop is paused, nobody judges what has ended: it is not running for that."""
    if iteration.status is not IterationStatus.RUNNING:
        return iteration
    from labwright.agent.wild.noise import all_ended

    return iteration.evolve(status=IterationStatus.ENDED) if all_ended(lab, iteration) else iteration


def pause(lab: Lab, wild_id: str, actor: Actor) -> Wild:
    """Nothing new begins; what runs goes on."""
    with lab.db.transaction() as tx:
        wild = stored.get(tx.connection, wild_id)
        _check_at_work(wild, "pause")
        paused = change(lab, tx, wild, stood_still(wild, f"paused by {actor}"), actor)
    _hold_queue(lab, wild.sweep_id, actor)
    return paused


def stood_still(wild: Wild, reason: str, asked: str | None = None) -> Wild:
    return wild.move(WildStatus.PAUSED, status_reason=reason, asked=asked, **clock_stopped(wild))


def _hold_queue(lab: Lab, sweep_id: str, actor: Actor) -> None:
    with contextlib.suppress(Conflict):  # held, or over, already
        sweep_verbs.pause(lab, sweep_id, actor)


def resume(lab: Lab, wild_id: str, actor: Actor, budget: dict[str, Any] | None = None) -> Wild:
    """Go on after a pause. More budget is a person's to give."""
    if budget and actor.scope is not Scope.PERSON:
        raise Forbidden("Only a person raises a budget.", hint="Ask for it; resume without one goes on with what is.")
    with lab.db.transaction() as tx:
        wild = stored.get(tx.connection, wild_id)
        if wild.status is not WildStatus.PAUSED:
            raise Conflict(f"Wild loop {wild_id} is {wild.status}, not paused.", hint="There is nothing to resume.")
        _clear_alert(tx, wild, actor)
        going = wild.evolve(budget={**wild.budget, **(budget or {})}, asked=None, running_since=now(), report=None)
        if wild.asked is not None:
            short = Purse(lab, going).allow(1).short
            refuse_shortage(f"Wild loop {going.id}", f"labwright wild resume {going.id}", _BUDGET_FLAGS, short)
        resumed = change(lab, tx, wild, going.move(WildStatus.RUNNING), actor)
    if sweeps.get(lab.db.reader(), wild.sweep_id).status is SweepStatus.PAUSED:
        sweep_verbs.resume(lab, wild.sweep_id, actor)
    return resumed


def stop(lab: Lab, wild_id: str, actor: Actor) -> Wild:
    """With all of its runs. What it has found until now is in its report."""
    from labwright.agent.wild.news import tell_of_end

    with lab.db.transaction() as tx:
        wild = stored.get(tx.connection, wild_id)
        if wild.is_ended:
            raise Conflict(f"Wild loop {wild_id} has ended already ({wild.status}).", hint="There is nothing to stop.")
        stopped = change(lab, tx, wild, ended(lab, wild, WildStatus.STOPPED, f"stopped by {actor}"), actor)
        _clear_alert(tx, wild, actor)
        tell_of_end(lab, tx, stopped)
    end_sweep(lab, stopped, actor)
    return stopped


def ended(lab: Lab, wild: Wild, status: WildStatus, reason: str) -> Wild:
    """With what was under way closed, and the report written."""
    why = "not needed any more" if status is WildStatus.COMPLETED else f"not counted: {reason}"
    for iteration in wild.open_iterations:
        wild = wild.with_iteration(iteration.decided(IterationVerdict.STOP, why, now()))
    last = wild.move(status, status_reason=reason, asked=None, ended_at=now(), **clock_stopped(wild))
    return reported(lab, last)


def reported(lab: Lab, wild: Wild) -> Wild:
    """With what it has used, and what was tried, what failed and what is established by now."""
    from labwright.agent.wild.report import write_report

    counted = wild.evolve(used=used(lab, wild))
    return counted.evolve(report=write_report(lab, counted))


def end_sweep(lab: Lab, wild: Wild, actor: Actor) -> None:
    """A loop that came to its end leaves a completed sweep; any other one takes its runs with it."""
    with contextlib.suppress(Conflict):  # somebody was faster
        if wild.status is WildStatus.COMPLETED:
            sweep_verbs.complete_wild(lab, wild.sweep_id, actor)
        else:
            sweep_verbs.stop(lab, wild.sweep_id, actor)


def steer(lab: Lab, wild_id: str, text: str, actor: Actor, key: IdempotencyKey | None = None) -> Wild:
    """Words for the next proposal. Rules take flags and values from them, and refuse what has neither."""
    wild = get(lab, wild_id)
    if wild.search == RULES and not wild.is_ended:
        from labwright.agent.wild.goal import steered
        from labwright.planning.scan import scan_project

        steered(text, scan_project(lab.paths.project), wild.script)
    with lab.db.transaction() as tx:
        if answer := recall(tx, key):
            return Wild.from_dict(json.loads(answer))
        before = stored.get(tx.connection, wild_id)
        if before.is_ended:
            raise Conflict(f"Wild loop {wild_id} has ended ({before.status}).", hint="Start another one.")
        if len(before.steering) >= _MOST_STEERING:
            raise Invalid(f"It was steered {_MOST_STEERING} times already.", hint="Stop it and start another one.")
        said = {"text": text, "at": now(), "taken_in": None}
        after = change(lab, tx, before, before.evolve(steering=(*before.steering, said)), actor)
        remember(tx, key, after.to_dict())
    return after


def change(lab: Lab, tx: Transaction, before: Wild, after: Wild, actor: Actor) -> Wild:
    """In the database and in the loop's own file, which a rebuild reads."""
    stored.change(tx, before, after, str(actor))
    _write(lab, after)
    return after


def _write(lab: Lab, wild: Wild) -> None:
    write_json(lab.paths.wild_loop(wild.id), wild.to_dict(), sync=False)


def _check_at_work(wild: Wild, verb: str) -> None:
    if wild.status not in AT_WORK:
        raise Conflict(f"Wild loop {wild.id} is {wild.status}.", hint=f"There is nothing to {verb}.")


def _clear_alert(tx: Transaction, wild: Wild, actor: Actor) -> None:
    """Nobody needs to answer what was decided otherwise."""
    if wild.asked is None:
        return
    alert = alerts.get(tx.connection, wild.asked)
    if alert.answer is None:
        alerts.resolve(tx, alert.answered("cleared", str(actor), now()), str(actor))
