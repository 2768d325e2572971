"""Jobs that Slurm itself holds, since their node could not start them: one alert for all of them.

Not released by us: whatever kept the node from starting them may still be so, and only a person can look.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from labwright.compute.lab import Lab
from labwright.compute.runs.alerts import SLURM_HELD_RULE, clear_alerts, raise_alert
from labwright.domain.alert import Alert, Severity
from labwright.domain.run import Run
from labwright.store import alerts
from labwright.store.database import Transaction

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
