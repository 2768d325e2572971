"""Jobs that are held in Slurm's queue: by us, while their sweep is paused, or by Slurm itself (stuck).

`SlurmHolds` compares jobs with sweeps once a second. So a server that dies between a verb and its order loses nothing.
A killed controller forgets the orders of its last seconds, so each order is repeated until squeue has shown its effect
for a while. Holds by somebody else stay: a file in the run folder marks our own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from labwright.compute.lab import Lab
from labwright.compute.runs.alerts import SLURM_HELD_RULE, clear_alerts, raise_alert
from labwright.compute.slurm.jobs import HELD, PENDING_MESSAGE, USER_HOLD
from labwright.compute.slurm.orders import HOLD, RELEASE
from labwright.domain.alert import Alert, Severity
from labwright.domain.run import Run, RunStatus
from labwright.store import alerts, sweeps
from labwright.store.database import Transaction

_SETTLED_SECONDS = 20.0  # a controller saves its state more often than that


@dataclass(slots=True, kw_only=True)
class _Order:
    verb: str  # HOLD or RELEASE
    given_at: float
    is_settled: bool = False  # the order took effect; if the job changes later, somebody else changed it

    @property
    def is_due(self) -> bool:
        return not self.is_settled and time.monotonic() >= self.given_at + _SETTLED_SECONDS


class SlurmHolds:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._last: dict[str, _Order] = {}  # by run

    def update(self, active: Iterable[Run]) -> None:
        pending = [
            run
            for run in active
            if run.is_on_slurm and run.status is RunStatus.LAUNCHING and run.slurm_job_id and not run.stop_requested
        ]
        paused = {sweep_id for sweep_id, limit in sweeps.limits(self._lab.db.reader()).items() if limit == 0}
        self._settle(pending)
        hold = [run for run in pending if run.sweep_id in paused and self._needs_order(run, HOLD)]
        release = [run for run in pending if run.sweep_id not in paused and self._needs_order(run, RELEASE)]
        ours = [run for run in release if os.path.exists(self._lab.paths.run(run.id).held)]
        if hold:
            self._lab.slurm.hold(hold)
        if ours:
            self._lab.slurm.release(ours)
        now = time.monotonic()
        self._last |= {run.id: _Order(verb=HOLD, given_at=now) for run in hold}
        self._last |= {run.id: _Order(verb=RELEASE, given_at=now, is_settled=run not in ours) for run in release}

    def _needs_order(self, run: Run, verb: str) -> bool:
        last = self._last.get(run.id)
        return last is None or last.verb != verb or (last.is_due and not _agrees(run, verb))

    def _settle(self, pending: list[Run]) -> None:
        """Drop orders for jobs that have started, and settle orders that squeue shows as done."""
        waiting = {run.id: run for run in pending}
        for run_id, order in list(self._last.items()):
            run = waiting.get(run_id)
            if run is None:
                del self._last[run_id]
            elif order.is_due and _agrees(run, order.verb):
                order.is_settled = True
            else:
                continue
            if order.verb == RELEASE:
                with suppress(FileNotFoundError):
                    os.unlink(self._lab.paths.run(run_id).held)


def _agrees(run: Run, verb: str) -> bool:
    """Return whether squeue shows the effect of an order. False if the job is not listed as pending."""
    if not run.status_reason.startswith(PENDING_MESSAGE):
        return False
    if verb == HOLD:
        return HELD.search(run.status_reason) is not None
    return USER_HOLD not in run.status_reason


_NAMED = 10
_CLEARED = "cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckJob:
    run: Run
    job_id: str
    reason: str


class SlurmStuck:
    """One alert for all jobs that Slurm holds because their node could not start them.

    We do not release them: the cause may persist, and only a person can check the node.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._known: set[str] = set()  # runs in the current alert
        self._alert: Alert | None = None

    def update(self, stuck: Mapping[str, StuckJob], fresh: Collection[str]) -> None:
        """Update the alert. `stuck`: all stuck jobs by run; `fresh`: the runs that were not stuck before."""
        if not fresh and set(stuck) == self._known:
            return
        with self._lab.db.transaction() as tx:
            alert = self._open_alert(tx, stuck)
            if alert is not None:
                self._alert = replace(alert, message=_message(list(stuck.values())), choices=_choices(stuck))
                if self._alert != alert:
                    alerts.change(tx, self._alert, "system")
            elif stuck and (fresh or self._was_cleared(tx)):
                first = next(iter(stuck.values()))
                message = _message(list(stuck.values()))
                raise_alert(tx, first.run, SLURM_HELD_RULE, message, Severity.WARNING, _choices(stuck))
                self._alert = self._open_alert(tx, stuck)
        self._known = set(stuck)

    def released(self, run: Run) -> None:
        """Clear the alert: a job is not stuck any more. The next listing raises it again for the others."""
        with self._lab.db.transaction() as tx:
            clear_alerts(tx, run, SLURM_HELD_RULE)

    def _open_alert(self, tx: Transaction, stuck: Mapping[str, StuckJob]) -> Alert | None:
        pending = (alert for run_id in stuck for alert in alerts.pending_of_run(tx.connection, run_id))
        return next((alert for alert in pending if alert.rule == SLURM_HELD_RULE), None)

    def _was_cleared(self, tx: Transaction) -> bool:
        """Return whether the alert was cleared together with its run, and not by a person."""
        return self._alert is not None and alerts.get(tx.connection, self._alert.id).answer == _CLEARED


def _choices(stuck: Collection[str]) -> tuple[str, ...]:
    """`stop` would stop only the run of the alert, so it is not offered for several."""
    return ("ignore", "stop") if len(stuck) == 1 else ("ignore",)


def _message(jobs: list[StuckJob]) -> str:
    ids = ",".join(job.job_id for job in jobs)
    reason = jobs[0].reason
    if len(jobs) == 1:
        what = f"Slurm could not start job {ids} and holds it now ({reason}). It waits until somebody checks its node "
        return f"{what}and releases it: scontrol release {ids}"
    named = ", ".join(job.run.id for job in jobs[:_NAMED])
    more = f" and {len(jobs) - _NAMED} more" if len(jobs) > _NAMED else ""
    what = f"Slurm could not start {len(jobs)} jobs and holds them now ({reason}): {named}{more}. They wait until "
    how = f"somebody checks their nodes and releases them: scontrol release {ids}"
    return f"{what}{how} (or stops them: labwright stop RUN)"
