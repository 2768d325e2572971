"""Ends runs of a sweep that are not worth going on with, by the verb that stops any run."""

from __future__ import annotations

import contextlib

from labwright.compute.lab import Lab
from labwright.domain.actor import SYSTEM
from labwright.domain.errors import Conflict
from labwright.domain.run import TERMINAL, RunStatus
from labwright.domain.search.early_stop import BestCurve, checkpoint, reason_to_stop
from labwright.domain.sweep import Sweep
from labwright.services.runs import verbs as run_verbs
from labwright.services.sweeps.verbs import change
from labwright.store import metrics, sweeps
from labwright.store.sweeps import SweepRun

_POINTS = 2000
_OTHERS = 500  # the newest of those that ended are enough to compare with
REASON = "early_stop: "


class EarlyStop:
    """Of one sweep. What it remembers spares reading it again and can be lost at any time, but for rungs."""

    def __init__(self, rungs: dict[str, int]) -> None:
        self._ended: dict[str, BestCurve] = {}
        self._judged = dict(rungs)  # up to which step, by run

    def look(self, lab: Lab, sweep: Sweep) -> None:
        assert sweep.early_stop is not None
        assert sweep.metric is not None
        rows = sweeps.runs_of(lab.db.reader(), sweep.id)
        running = [row.id for row in rows if row.status == RunStatus.RUNNING]
        if not running:
            return
        known = {**self._of_ended(lab, sweep, rows), **{run_id: _progress(lab, sweep, run_id) for run_id in running}}
        for run_id in running:
            words = self._judge(sweep, run_id, known)
            if words:
                with contextlib.suppress(Conflict):  # it has ended by itself
                    run_verbs.stop(lab, run_id, SYSTEM, f"{REASON}{words}")
        self._keep_rungs(lab, sweep)

    def _judge(self, sweep: Sweep, run_id: str, known: dict[str, BestCurve]) -> str:
        """Once at each checkpoint: what is good enough then may go on to the next."""
        assert sweep.early_stop is not None
        assert sweep.metric is not None
        own = known[run_id]
        step = checkpoint(sweep.early_stop, own.last_step)
        if step is None or step <= self._judged.get(run_id, -1):
            return ""
        others = [progress for other, progress in known.items() if other != run_id]
        words = reason_to_stop(sweep.early_stop, sweep.metric["goal"], own, others, step)
        if words is not None:
            self._judged[run_id] = step
        return words or ""

    def _keep_rungs(self, lab: Lab, sweep: Sweep) -> None:
        """A run that was let go on from a rung must not be judged there again, whoever has come since."""
        assert sweep.early_stop is not None
        if sweep.early_stop["method"] != "halving" or self._judged == sweep.rungs:
            return
        with lab.db.transaction() as tx:
            current = sweeps.get(tx.connection, sweep.id)
            change(lab, tx, current, current.evolve(rungs=dict(self._judged)), SYSTEM)

    def _of_ended(self, lab: Lab, sweep: Sweep, rows: list[SweepRun]) -> dict[str, BestCurve]:
        counted = (RunStatus.FINISHED, RunStatus.STOPPED)
        ended = sorted((row for row in rows if row.status in counted), key=lambda row: row.ended_at or "")
        wanted = [row.id for row in ended[-_OTHERS:]]
        self._ended = {run_id: self._ended.get(run_id) or _progress(lab, sweep, run_id) for run_id in wanted}
        gone = {row.id for row in rows if row.status in TERMINAL}
        self._judged = {run_id: step for run_id, step in self._judged.items() if run_id not in gone}
        return self._ended


def _progress(lab: Lab, sweep: Sweep, run_id: str) -> BestCurve:
    assert sweep.metric is not None
    found = [series for series in metrics.series_of(lab.db.reader(), run_id) if series.key == sweep.metric["key"]]
    best = metrics.preferred(found)
    if not best:
        return BestCurve((), ())
    points = metrics.read(lab.db.reader(), best[0], _POINTS, with_times=False)
    return BestCurve.of(points.steps, points.values, sweep.metric["goal"])
