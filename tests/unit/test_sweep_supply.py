"""How many runs a sweep is given at a time where Slurm would take any number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.cluster import Cluster, ClusterType
from labwright.domain.sweep import SweepMethod
from labwright.services import sweeps
from labwright.services.new_run import NewRun
from labwright.services.new_sweep import NewSweep
from labwright.services.sweep_supply import Supply
from labwright.store import sweeps as stored
from tests.support.lab import lab_in
from tests.support.sweeping import METRIC


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as lab:
        lab.cluster.current = Cluster(type=ClusterType.SLURM, max_parallel=8)
        yield lab


def at_work(lab: Lab, method: SweepMethod, **facts: Any) -> int:
    parameters = {"lr": {"min": 0.1, "max": 1.0}}
    wanted = NewSweep(
        name="s",
        base_command="true",
        parameters=parameters,
        method=method,
        common=NewRun(command=""),
        metric=METRIC,
        auto_start=True,
        sampling_seed=1,
        again=True,
        **facts,
    )
    sweep = sweeps.create(lab, wanted, PERSON)
    Supply(lab, sweep).top_up()
    return stored.count_by_status(lab.db.reader(), sweep.id)["queued"]


def test_an_adaptive_sweep_asks_for_a_few_and_learns_from_them_before_it_asks_for_more(lab: Lab) -> None:
    assert at_work(lab, SweepMethod.ADAPTIVE, max_runs=60) == 8, "as many as the cluster bears"
    assert at_work(lab, SweepMethod.ADAPTIVE, max_runs=24) == 4, "so that it looks at results six times at least"
    assert at_work(lab, SweepMethod.ADAPTIVE, max_runs=3) == 1
    assert at_work(lab, SweepMethod.ADAPTIVE, max_runs=60, parallel=20) == 20, "or as many as it says itself"


def test_a_budget_of_time_is_not_overrun_by_all_at_once_and_one_of_runs_cannot_be(lab: Lab) -> None:
    assert at_work(lab, SweepMethod.RANDOM, max_runs=30, budget={"wall_seconds": 3600}) == 8
    assert at_work(lab, SweepMethod.RANDOM, max_runs=30, budget={"runs": 20}) == 20
    assert at_work(lab, SweepMethod.RANDOM, max_runs=30) == 30
