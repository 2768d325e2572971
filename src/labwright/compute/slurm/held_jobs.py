"""Jobs of a paused sweep that wait in Slurm's queue are held there, and released when it goes on.

JobListing to once a second instead of by the verbs, so that a kill between a verb and its order leaves nothing undone.
A controller that is killed forgets the orders of its last seconds, so each is given again until squeue has agreed with
it for a while. What somebody else holds stays held: a file in the run folder says which holds are ours.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from labwright.compute.lab import Lab
from labwright.compute.runs.alerts import SLURM_HELD_RULE, clear_alerts, raise_alert
from labwright.compute.slurm.jobs import HELD, PENDING_WORDS, USER_HOLD
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
    is_settled: bool = False  # whatever becomes of the job from now on is somebody's will

    @property
    def is_due(self) -> bool:
        return not self.is_settled and time.monotonic() >= self.given_at + _SETTLED_SECONDS


class SlurmHolds:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._last: dict[str, _Order] = {}  # by run

    def see_to(self, active: Iterable[Run]) -> None:
        pending = [run for run in active if _is_pending(run) and not run.stop_requested]
        paused = {sweep_id for sweep_id, limit in sweeps.limits(self._lab.db.reader()).items() if limit == 0}
        self._settle(pending)
        hold = [run for run in pending if run.sweep_id in paused and self._is_to_hear(run, HOLD)]
        release = [run for run in pending if run.sweep_id not in paused and self._is_to_hear(run, RELEASE)]
        ours = [run for run in release if os.path.exists(self._lab.paths.run(run.id).held)]
        if hold:
            self._lab.slurm.hold(hold)
        if ours:
            self._lab.slurm.release(ours)
        now = time.monotonic()
        self._last |= {run.id: _Order(verb=HOLD, given_at=now) for run in hold}
        self._last |= {run.id: _Order(verb=RELEASE, given_at=now, is_settled=run not in ours) for run in release}

    def _is_to_hear(self, run: Run, verb: str) -> bool:
        last = self._last.get(run.id)
        return last is None or last.verb != verb or (last.is_due and not _agrees(run, verb))

    def _settle(self, pending: list[Run]) -> None:
        """A job that has begun, or that squeue has listed as ordered, needs no more orders."""
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


def _is_pending(run: Run) -> bool:
    return run.is_on_slurm and run.status is RunStatus.LAUNCHING and run.slurm_job_id is not None


def _agrees(run: Run, verb: str) -> bool:
    """Whether squeue lists the job as it was ordered. What it does not list as pending has no say."""
    if not run.status_reason.startswith(PENDING_WORDS):
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
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._known: set[str] = set()  # runs, as they were told last
        self._alert: Alert | None = None

    def tell(self, stuck: Mapping[str, StuckJob], fresh: Collection[str]) -> None:
        """All that are stuck now, by run, and which of them were not before."""
        if not fresh and set(stuck) == self._known:
            return
        with self._lab.db.transaction() as tx:
            open_alert = self._open(tx, stuck)
            if open_alert is not None:
                self._alert = self._retold(tx, open_alert, stuck)
            elif stuck and (fresh or self._was_cleared(tx)):
                self._alert = self._raised(tx, stuck)
        self._known = set(stuck)

    def released(self, run: Run) -> None:
        """Its job is not stuck any more. The next look tells of those that still are."""
        with self._lab.db.transaction() as tx:
            clear_alerts(tx, run, SLURM_HELD_RULE)

    def _open(self, tx: Transaction, stuck: Mapping[str, StuckJob]) -> Alert | None:
        pending = (alert for run_id in stuck for alert in alerts.pending_of_run(tx.connection, run_id))
        return next((alert for alert in pending if alert.rule == SLURM_HELD_RULE), None)

    def _was_cleared(self, tx: Transaction) -> bool:
        """With the run it stood at, and not by somebody who had read it."""
        return self._alert is not None and alerts.get(tx.connection, self._alert.id).answer == _CLEARED

    def _retold(self, tx: Transaction, alert: Alert, stuck: Mapping[str, StuckJob]) -> Alert:
        told = replace(alert, message=_words(list(stuck.values())), choices=_choices(stuck))
        if told != alert:
            alerts.change(tx, told, "system")
        return told

    def _raised(self, tx: Transaction, stuck: Mapping[str, StuckJob]) -> Alert | None:
        first = next(iter(stuck.values()))
        words = _words(list(stuck.values()))
        raise_alert(tx, first.run, SLURM_HELD_RULE, words, Severity.WARNING, _choices(stuck))
        return self._open(tx, stuck)


def _choices(stuck: Collection[str]) -> tuple[str, ...]:
    """`stop` means the run that an alert stands at, so it is no answer where there are many."""
    return ("ignore", "stop") if len(stuck) == 1 else ("ignore",)


def _words(jobs: list[StuckJob]) -> str:
    ids = ",".join(job.job_id for job in jobs)
    reason = jobs[0].reason
    if len(jobs) == 1:
        what = f"Slurm could not start job {ids} and holds it now ({reason}). It waits until somebody sees to its node "
        return f"{what}and releases it: scontrol release {ids}"
    named = ", ".join(job.run.id for job in jobs[:_NAMED])
    more = f" and {len(jobs) - _NAMED} more" if len(jobs) > _NAMED else ""
    what = f"Slurm could not start {len(jobs)} jobs and holds them now ({reason}): {named}{more}. They wait until "
    how = f"somebody sees to their nodes and releases them: scontrol release {ids}"
    return f"{what}{how} (or stops them: labwright stop RUN)"
