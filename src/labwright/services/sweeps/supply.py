"""Give a running sweep its next runs: queue ready ones, or request the next configuration."""

from __future__ import annotations

import json
import math
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.scheduler import capacity_of
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import epoch_seconds, now
from labwright.domain.cluster import ClusterType
from labwright.domain.metrics.points import mean_of
from labwright.domain.run import ACTIVE, TERMINAL, RunStatus
from labwright.domain.search.budget import (
    BudgetUsage,
    Shortage,
    lasting_shortage,
    needed_budget,
    raise_budget,
    shortage,
    used_up,
)
from labwright.domain.search.space import Config, parse_space
from labwright.domain.sweep import Sweep, SweepMethod, SweepStatus
from labwright.services.sweeps.adaptive import Trial, TrialState, propose
from labwright.services.sweeps.new_sweep import add_runs, gpus_per_run, queue_ready, runs_for, wall_seconds
from labwright.services.sweeps.results import outcomes
from labwright.store import sweeps
from labwright.store.sweeps import SweepRun

_ROUNDS = 6  # an adaptive sweep on Slurm learns from its results at least this often


class Supply:
    """The state of one sweep at one moment. It counts once, then tops up; one thread uses it."""

    def __init__(self, lab: Lab, sweep: Sweep) -> None:
        self._lab = lab
        self._sweep = sweep
        counts = sweeps.count_by_status(lab.db.reader(), sweep.id)
        self._ready = counts[RunStatus.READY]
        self._total = sum(counts.values())
        self._queued = counts[RunStatus.QUEUED]
        self._launching = counts[RunStatus.LAUNCHING]  # on Slurm these are pending jobs
        self._in_flight = self._queued + sum(counts[status] for status in ACTIVE)
        failures, self.successes = outcomes(lab.db.reader(), sweep)
        self.failures = failures - sweep.failures_accepted
        self.added = 0
        self._exhausted = False
        self._gpus = gpus_per_run(lab, sweep)
        self._ended_seconds: list[float] = []
        self._finished_seconds: list[float] = []
        self._elapsed: list[float] = []
        self._earlier_seconds = 0.0
        if sweep.is_rationed:
            self._count_times()

    @property
    def is_done(self) -> bool:
        return not self._ready and not self._in_flight and not self._may_propose()

    @property
    def overrun(self) -> Shortage | None:
        """Return the part of the budget that the runs so far have used up."""
        return used_up(self._sweep.budget, self._ledger())

    @property
    def at_work(self) -> int:
        """Return how many runs continue during a pause. Pending jobs are held."""
        return self._in_flight - self._queued - self._launching

    def raised(self, part: str) -> dict[str, Any]:
        """Return the budget, raised in this part so that the sweep can continue."""
        sweep = self._sweep
        return raise_budget(sweep.budget, sweep.first_budget, part, needed_budget(part, self._ledger()))

    def cannot_go_on(self) -> Shortage | None:
        """Return the part of the budget that prevents the sweep from continuing, or None."""
        if not self._sweep.is_rationed or self.is_done:
            return None
        has_more = self._ready or self._may_propose()
        return self.overrun or (self._permanent_shortage() if has_more else None)

    def top_up(self) -> Shortage | None:
        """Queue what the budget allows. Return the missing part if the budget holds runs back."""
        if not self._sweep.is_rationed and self._sweep.method is not SweepMethod.ADAPTIVE:
            self._queue(self._ready)
            return None
        while self._in_flight < self._window() and (self._ready or self._may_propose()):
            if shortage(self._sweep.budget, self._ledger()):
                return self._permanent_shortage()
            if self._ready:
                self._queue(1)
            else:
                self._propose_next()
        return None

    def _permanent_shortage(self) -> Shortage | None:
        """Return the part of the budget that stays too small whatever the active and queued runs use.

        Budget reserved for them may come back if they end early. Pending jobs already count as runs, so only the
        remaining time has to be enough for one more run.
        """
        if self._queued:
            return None
        budget = dict(self._sweep.budget)
        if self._launching:
            budget.pop("runs", None)
        return lasting_shortage(budget, self._ledger())

    def _window(self) -> int:
        """Return how many runs may be queued or active at a time: the sweep's limit, or the machine's capacity."""
        is_limited = self._sweep.template.get("time_limit_seconds") or not self._gpus
        if "gpu_hours" in self._sweep.budget and not is_limited and not self._finished_seconds:
            return 1  # the duration is unknown: many first runs could exceed the budget together
        if self._sweep.parallel:
            return self._sweep.parallel
        cluster = self._lab.cluster.current
        if cluster.type is not ClusterType.SLURM:
            return capacity_of(cluster, self._lab.settings.max_parallel).fitting(self._gpus)
        at_work = cluster.runs_at_work(self._gpus)  # Slurm itself accepts any number
        if self._sweep.method is SweepMethod.ADAPTIVE:
            return max(1, min((self._sweep.max_runs or 0) // _ROUNDS, at_work))
        if self._sweep.budget.keys() - {"runs"}:  # running jobs use up a budget of time
            return at_work
        return self._total

    def _queue(self, count: int) -> None:
        if not count:
            return
        with self._lab.db.transaction() as tx:
            if sweeps.get(tx.connection, self._sweep.id).status is not SweepStatus.RUNNING:
                self._ready = 0
                return
            moved = queue_ready(tx, self._sweep, count, SYSTEM)
        self._ready = self._ready - moved if moved else 0  # runs that others added are not queued here
        self._queued += moved
        self._in_flight += moved
        self.added += moved

    def _may_propose(self) -> bool:
        sweep = self._sweep
        if sweep.method is not SweepMethod.ADAPTIVE or self._exhausted:
            return False
        return self._next_trial() < (sweep.max_runs or 0) // sweep.runs_per_configuration

    def _next_trial(self) -> int:
        return 1 + max((row.trial for row in self._rows() if row.trial is not None), default=-1)

    def _rows(self) -> list[SweepRun]:
        return sweeps.runs_of(self._lab.db.reader(), self._sweep.id)

    def _propose_next(self) -> None:
        """Request a configuration and insert its runs. After a kill in between, the same configuration is proposed."""
        sweep, space, number = self._sweep, parse_space(self._sweep.parameters), self._next_trial()
        assert sweep.metric is not None
        config = propose(space, sweep.metric["goal"], self._history(), sweep.sampling_seed, number)
        if config is None:
            self._exhausted = True
            return
        with self._lab.db.transaction() as tx:
            current = sweeps.get(tx.connection, sweep.id)  # its seeds or budget may have changed
            if current.status is not SweepStatus.RUNNING:
                self._exhausted = True
                return
            made = runs_for(current, space, [(number, config)])
            add_runs(self._lab, tx, made, SYSTEM)
        if current.is_rationed:
            self._ready += len(made)
        else:
            self._queued += len(made)
            self._in_flight += len(made)
        self._total += len(made)
        self.added += len(made)

    def _history(self) -> list[Trial]:
        sweep = self._sweep
        assert sweep.metric is not None
        values = sweeps.metric_values(self._lab.db.reader(), sweep.id, sweep.metric)
        trials: dict[int, list[SweepRun]] = {}
        rows = self._rows()
        for row in rows:
            if row.trial is not None:
                trials.setdefault(row.trial, []).append(row)
        # Runs that ended after there was room for this request are left out. So a server that was down proposes what
        # it would have proposed.
        ended = sorted((row for row in rows if row.status in TERMINAL), key=lambda row: (row.ended_at or "", row.id))
        counted = {row.id for row in ended[: max(0, len(rows) - self._window() + 1)]}
        return [_trial(sweep, number, runs, values, counted) for number, runs in sorted(trials.items())]

    def _count_times(self) -> None:
        self._earlier_seconds = sweeps.earlier_seconds(self._lab.db.reader(), self._sweep.id)
        at = epoch_seconds(now())
        for status, started, ended in sweeps.run_times(self._lab.db.reader(), self._sweep.id):
            seconds = max(0.0, (epoch_seconds(ended) if ended else at) - epoch_seconds(started))
            (self._ended_seconds if ended else self._elapsed).append(seconds)
            if status == RunStatus.FINISHED:
                self._finished_seconds.append(seconds)

    def _ledger(self) -> BudgetUsage:
        """Return the use of the budget. A run is expected to take as long as the longest so far, or its time limit."""
        limit = self._sweep.template.get("time_limit_seconds")
        finished = max(self._finished_seconds, default=limit or 0.0)
        longest = max((finished, *self._ended_seconds, *self._elapsed))
        not_started = self._in_flight - len(self._elapsed)
        promised = sum(max(0.0, longest - elapsed) for elapsed in self._elapsed) + longest * max(0, not_started)
        return BudgetUsage(
            runs=self._total - self._ready,
            gpu_seconds=(self._earlier_seconds + sum(self._ended_seconds) + sum(self._elapsed)) * self._gpus,
            promised_gpu_seconds=promised * self._gpus,
            wall_seconds=wall_seconds(self._sweep),
            run_seconds=longest,
            gpus=self._gpus,
        )


def _trial(sweep: Sweep, number: int, rows: list[SweepRun], values: dict[str, float], ended: set[str]) -> Trial:
    """Return the trial of one configuration: the mean over finished seeds, open until all seeds have ended."""
    params = json.loads(rows[0].params)
    config: Config = {name: params[name] for name in sweep.parameters if name in params}
    if any(row.id not in ended for row in rows):
        return Trial(number, config, TrialState.OPEN)
    for status, state in ((RunStatus.FINISHED, TrialState.DONE), (RunStatus.STOPPED, TrialState.STOPPED_EARLY)):
        found = [values[row.id] for row in rows if row.status == status and math.isfinite(values.get(row.id, math.nan))]
        if found and (state is TrialState.DONE or sweep.early_stop):
            return Trial(number, config, state, mean_of(found))
    return Trial(number, config, TrialState.FAILED)
