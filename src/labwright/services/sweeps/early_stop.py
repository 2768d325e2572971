"""Early stopping: stop the runs of a sweep that are unlikely to be among the best."""

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
_OTHERS = 500  # newest ended runs to compare with
REASON = "early_stop: "


class EarlyStop:
    """Early stopping of one sweep. Its memory is a cache, except for the rungs, which are stored."""

    def __init__(self, rungs: dict[str, int]) -> None:
        self._ended: dict[str, BestCurve] = {}
        self._judged = dict(rungs)  # run id: the last checkpoint at which it was judged

    def stop_hopeless_runs(self, lab: Lab, sweep: Sweep) -> None:
        assert sweep.early_stop is not None
        assert sweep.metric is not None
        rows = sweeps.runs_of(lab.db.reader(), sweep.id)
        running = [row.id for row in rows if row.status == RunStatus.RUNNING]
        if not running:
            return
        known = {
            **self._curves_of_ended(lab, sweep, rows),
            **{run_id: _progress(lab, sweep, run_id) for run_id in running},
        }
        for run_id in running:
            reason = self._judge(sweep, run_id, known)
            if reason:
                with contextlib.suppress(Conflict):  # it has ended by itself
                    run_verbs.stop(lab, run_id, SYSTEM, f"{REASON}{reason}")
        if sweep.early_stop["method"] == "halving" and self._judged != sweep.rungs:
            # Store the checkpoints, so that a run that passed one is not judged there again.
            with lab.db.transaction() as tx:
                current = sweeps.get(tx.connection, sweep.id)
                change(lab, tx, current, current.evolve(rungs=dict(self._judged)), SYSTEM)

    def _judge(self, sweep: Sweep, run_id: str, known: dict[str, BestCurve]) -> str:
        """Return a reason to stop the run, or nothing. A run is judged once at each checkpoint."""
        assert sweep.early_stop is not None
        assert sweep.metric is not None
        own = known[run_id]
        step = checkpoint(sweep.early_stop, own.last_step)
        if step is None or step <= self._judged.get(run_id, -1):
            return ""
        others = [progress for other, progress in known.items() if other != run_id]
        reason = reason_to_stop(sweep.early_stop, sweep.metric["goal"], own, others, step)
        if reason is not None:
            self._judged[run_id] = step
        return reason or ""

    def _curves_of_ended(self, lab: Lab, sweep: Sweep, rows: list[SweepRun]) -> dict[str, BestCurve]:
        counted = (RunStatus.FINISHED, RunStatus.STOPPED)
        ended = sorted((row for row in rows if row.status in counted), key=lambda row: row.ended_at or "")
        compared = [row.id for row in ended[-_OTHERS:]]
        self._ended = {run_id: self._ended.get(run_id) or _progress(lab, sweep, run_id) for run_id in compared}
        ended_ids = {row.id for row in rows if row.status in TERMINAL}
        self._judged = {run_id: step for run_id, step in self._judged.items() if run_id not in ended_ids}
        return self._ended


def _progress(lab: Lab, sweep: Sweep, run_id: str) -> BestCurve:
    assert sweep.metric is not None
    series_of_key = [s for s in metrics.series_of(lab.db.reader(), run_id) if s.key == sweep.metric["key"]]
    preferred = metrics.preferred(series_of_key)
    if not preferred:
        return BestCurve((), ())
    points = metrics.read(lab.db.reader(), preferred[0], _POINTS, with_times=False)
    return BestCurve.of(points.steps, points.values, sweep.metric["goal"])
