"""Which runs of a plan's experiment count. It has one sweep, and more where an earlier one was stopped."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from labwright.compute.lab import Lab
from labwright.domain.run import Run, RunStatus
from labwright.domain.search.configurations import config_hash
from labwright.store import runs, sweeps
from labwright.workflow import Experiment


def counted_runs(lab: Lab, sweep_ids: Sequence[str]) -> list[Run]:
    """One for each configuration and seed: where one was tried again, the one that finished, else the newest.

    What somebody else put into a sweep is not the plan's.
    """
    found: dict[tuple[str | None, int | None], Run] = {}
    for row in (row for sweep_id in sweep_ids for row in sweeps.runs_of(lab.db.reader(), sweep_id)):
        if row.trial is None:
            continue
        run, known = runs.get(lab.db.reader(), row.id), found.get((row.config_hash, row.seed))
        if known is None or _rank(run) > _rank(known):
            found[row.config_hash, row.seed] = run
    return list(found.values())


def as_planned(counted: Sequence[Run], experiment: Experiment) -> list[Run]:
    """With the parameters that the plan gave them: what a script tells of itself makes no other configuration."""
    given = {config_hash(one.params): one.params for one in experiment.configurations()}
    return [_only(run, given.get(run.config_hash or config_hash({}), run.params)) for run in counted]


def _only(run: Run, names: Collection[str]) -> Run:
    return run.evolve(params={name: value for name, value in run.params.items() if name in names})


def _rank(run: Run) -> tuple[bool, str]:
    return run.status is RunStatus.FINISHED, run.created_at


def decisive_values(lab: Lab, sweep_ids: Sequence[str], metric: str) -> dict[str, float]:
    """By run, the last value of the metric that decides."""
    wanted = {"key": metric, "goal": "min"}
    found = [sweeps.metric_values(lab.db.reader(), sweep_id, wanted) for sweep_id in sweep_ids]
    return {run_id: value for values in found for run_id, value in values.items()}
