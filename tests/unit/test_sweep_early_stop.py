"""Early stopping from the database, as a restarted server finds it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.metrics.points import Points
from labwright.domain.run import Run, RunStatus
from labwright.domain.sweep import Sweep, SweepMethod
from labwright.services.runs.new_run import NewRun
from labwright.services.sweeps import verbs as sweeps
from labwright.services.sweeps.early_stop import EarlyStop
from labwright.services.sweeps.new_sweep import NewSweep
from labwright.store import metrics
from labwright.store import runs as stored_runs
from labwright.store import sweeps as stored
from tests.support.lab import lab_in, move
from tests.support.sweeping import METRIC


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as lab:
        yield lab


def halving(lab: Lab, count: int) -> tuple[Sweep, list[Run]]:
    wanted = NewSweep(
        name="s",
        base_command="true",
        parameters={"a": list(range(count))},
        method=SweepMethod.GRID,
        common=NewRun(command=""),
        metric=METRIC,
        early_stop={"method": "halving", "first_step": 2, "factor": 2},
        auto_start=True,
    )
    sweep = sweeps.create(lab, wanted, PERSON)
    return sweep, stored.unended_runs(lab.db.reader(), sweep.id)


def comes_to_step_two(lab: Lab, run: Run, loss: float) -> None:
    move(lab, run, RunStatus.LAUNCHING, RunStatus.RUNNING)
    points = Points(array("q", [1, 2]), array("d", [1.0, 1.0]), array("d", [loss, loss]))
    with lab.db.transaction() as tx:
        metrics.begin(tx, run.id, "sdk", 1, [(METRIC["key"], points)])


def looked_at_after_a_restart(lab: Lab, sweep: Sweep) -> None:
    current = stored.get(lab.db.reader(), sweep.id)
    EarlyStop(current.rungs).stop_hopeless_runs(lab, current)


def is_stopped(lab: Lab, run: Run) -> bool:
    return stored_runs.get(lab.db.reader(), run.id).stop_requested


def test_run_that_passed_a_rung_is_not_judged_there_again_after_a_restart(lab: Lab) -> None:
    sweep, (leads, trails, *later) = halving(lab, 6)
    comes_to_step_two(lab, leads, 5.0)
    comes_to_step_two(lab, trails, 6.0)
    looked_at_after_a_restart(lab, sweep)
    assert (is_stopped(lab, leads), is_stopped(lab, trails)) == (False, True)
    for better, run in enumerate(later):
        comes_to_step_two(lab, run, float(better))
    looked_at_after_a_restart(lab, sweep)
    assert not is_stopped(lab, leads)
