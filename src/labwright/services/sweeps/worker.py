"""Advance sweeps in the background: when one of their runs ends, or when a sweep is changed.

The worker queues the runs that the budget allows, requests the next configurations of adaptive sweeps, stops hopeless
runs, pauses a sweep that would exceed its budget, and completes a sweep that has nothing left to do.
"""

from __future__ import annotations

import os
import time
from collections import Counter

from labwright.compute.lab import Lab
from labwright.compute.runs.folder import forget_secrets
from labwright.compute.worker import Worker
from labwright.domain.actor import SYSTEM
from labwright.domain.alert import Alert, Severity
from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.ids import ALERT, new_id
from labwright.domain.run import ACTIVE, TERMINAL, RunStatus
from labwright.domain.search.budget import Shortage
from labwright.domain.sweep import Sweep, SweepMethod, SweepStatus
from labwright.services.runs.verbs import request_stop
from labwright.services.sweeps import results as sweep_views
from labwright.services.sweeps.early_stop import EarlyStop
from labwright.services.sweeps.supply import Supply
from labwright.services.sweeps.verbs import (
    BUDGET_RULE,
    CONTINUE,
    RAISE,
    STOP,
    change,
    clear_alerts,
    clock_stopped,
    paused,
)
from labwright.store import alerts, runs, sweeps

_CHECK_SECONDS = 1.0  # for sweeps with a budget or early stopping
_BEST_SECONDS = 5.0  # between two updates of the best configuration while a sweep runs
_ALL_FAILED = {SweepMethod.ADAPTIVE: 5}
_ALL_FAILED_OTHERWISE = 10
_ENDS = frozenset(str(status) for status in TERMINAL)


class SweepWorker(Worker):
    name = "sweeps"
    gather_seconds = 0.02  # runs that end together are handled together
    close_seconds = 10.0

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._early: dict[str, EarlyStop] = {}
        self._best_at: dict[str, float] = {}

    def concerned(self, events: list[Event]) -> set[str]:
        return {event.sweep_id for event in events if event.sweep_id and _matters(event)}

    def items_at_start(self) -> list[str]:
        # A kill may have come after a stop request was stored and before its stop file was written.
        for run in runs.with_status(self._lab.db.reader(), *ACTIVE):
            if run.stop_requested and not os.path.exists(self._lab.paths.run(run.id).stop):
                request_stop(self._lab, run, SYSTEM)
        return [sweep.id for status in _GOING for sweep in sweeps.with_status(self._lab.db.reader(), status)]

    def give_up(self, item: str, error: Exception) -> None:
        self._pause(item, f"it cannot continue: {error!r}", "sweep_fault", (CONTINUE, STOP))

    def advance(self, item: str) -> float | None:
        try:
            sweep = sweeps.get(self._lab.db.reader(), item)
        except NotFound:
            return None
        if sweep.status is SweepStatus.RUNNING and not sweep.is_wild:
            if sweep.early_stop and sweep.metric:
                self._early.setdefault(sweep.id, EarlyStop(sweep.rungs)).stop_hopeless_runs(self._lab, sweep)
            self._supply(sweep)
        elif sweep.status is SweepStatus.PAUSED and not sweep.is_wild and Supply(self._lab, sweep).is_done:
            self._complete(sweep.id)  # the runs that were active when it was paused were its last
        seconds_until_best = self._store_best(sweep.id)
        if sweep.status is SweepStatus.RUNNING and (sweep.early_stop is not None or sweep.budget):
            return _CHECK_SECONDS  # time passes without events, and no event says that a run starts
        self._early.pop(sweep.id, None)
        return seconds_until_best

    def _supply(self, sweep: Sweep) -> None:
        supply = Supply(self._lab, sweep)
        hopeless = supply.failures >= _ALL_FAILED.get(sweep.method, _ALL_FAILED_OTHERWISE) and not supply.successes
        if hopeless and not supply.is_done:
            self._pause(sweep.id, self._why_hopeless(sweep, supply.failures), "sweep_failures", (CONTINUE, STOP))
            return
        short, overrun = supply.top_up(), supply.overrun
        if supply.is_done:
            self._complete(sweep.id)
        elif overrun:
            self._pause_short(sweep, supply, overrun, "its budget is used up")
        elif short:
            self._pause_short(sweep, supply, short, "its budget does not allow another run")
        elif supply.added:
            self._lab.wake()

    def _pause_short(self, sweep: Sweep, supply: Supply, short: Shortage, why: str) -> None:
        part, message = short
        at_work = f" Active runs continue ({supply.at_work}); stop ends them too." if supply.at_work else ""
        hint = f" Answer raise to make it {supply.raised(part)[part]:g} {part}, or stop.{at_work}"
        self._pause(sweep.id, f"{why}: {message}", f"{BUDGET_RULE}{part}", (RAISE, STOP), hint)

    def _why_hopeless(self, sweep: Sweep, failures: int) -> str:
        counts = sweeps.count_by_status(self._lab.db.reader(), sweep.id)
        if counts[RunStatus.FINISHED] and sweep.metric:
            key, known = sweep.metric["key"], sweeps.metric_keys(self._lab.db.reader(), sweep.id)
            if key in known:
                return f"none of the {failures} runs that ended has a finite value of {key!r}"
            names = ", ".join(known[:10]) or "nothing"
            return f"none of the {failures} runs that ended logged {key!r}; they logged {names}"
        return f"all {failures} runs that ended failed; `labwright logs` of one of them shows why"

    def _pause(self, sweep_id: str, reason: str, rule: str, choices: tuple[str, ...], hint: str = "") -> None:
        with self._lab.db.transaction() as tx:
            sweep = sweeps.get(tx.connection, sweep_id)
            if sweep.status is not SweepStatus.RUNNING:
                return  # another request has changed it
            change(self._lab, tx, sweep, paused(sweep, reason), SYSTEM)
            alert = Alert(
                id=new_id(ALERT),
                run_id=None,
                sweep_id=sweep_id,
                message=f"Sweep {sweep.name} is paused: {reason}.{hint}",
                severity=Severity.WARNING,
                rule=rule,
                choices=choices,
                created_at=now(),
            )
            alerts.insert(tx, alert, str(SYSTEM))

    def _complete(self, sweep_id: str) -> None:
        with self._lab.db.transaction() as tx:
            sweep = sweeps.get(tx.connection, sweep_id)
            counts = sweeps.count_by_status(tx.connection, sweep_id)
            if sweep.status not in _GOING or any(counts[status] for status in _UNENDED):
                return
            # A failed run that was retried counts by the result of the retry.
            failed = Counter(str(run.status) for run in sweeps.failed_runs(tx.connection, sweep_id))
            bad = {"failed": failed["failed"], "lost": failed["lost"], "stopped": counts[RunStatus.STOPPED]}
            summary = ", ".join(f"{count} {status}" for status, count in bad.items() if count)
            facts = {**sweep_views.best_facts(tx.connection, sweep), **clock_stopped(sweep), "ended_at": now()}
            done = sweep.move(SweepStatus.COMPLETED, status_reason=summary, **facts)
            change(self._lab, tx, sweep, done, SYSTEM)
            clear_alerts(tx, sweep_id, SYSTEM)
        forget_secrets(self._lab, sweep_id)

    def _store_best(self, sweep_id: str) -> float | None:
        """Store the best configuration, for lists of sweeps. Return the seconds to wait if that was done just now."""
        left = self._best_at.get(sweep_id, 0.0) - time.monotonic()
        if left > 0:
            return left
        self._best_at[sweep_id] = time.monotonic() + _BEST_SECONDS
        facts = sweep_views.best_facts(self._lab.db.reader(), sweeps.get(self._lab.db.reader(), sweep_id))
        with self._lab.db.transaction() as tx:
            sweep = sweeps.get(tx.connection, sweep_id)
            if facts["best"] is not None and facts["best"] != sweep.best:
                change(self._lab, tx, sweep, sweep.evolve(**facts), SYSTEM)
        return None


_GOING = (SweepStatus.RUNNING, SweepStatus.PAUSED)
_UNENDED = (RunStatus.READY, RunStatus.QUEUED, *ACTIVE)


def _matters(event: Event) -> bool:
    """Return whether the event may change what the sweep does next. The worker ignores its own updates."""
    if event.type is EventType.RUN_STATUS:
        return str(event.data.get("to")) in _ENDS
    if event.type is EventType.SWEEP_UPDATED:
        return event.actor != str(SYSTEM)
    return event.type in (EventType.SWEEP_CREATED, EventType.SWEEP_STATUS)
