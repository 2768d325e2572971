"""How many runs a sweep starts at a time if Slurm would accept any number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.lab import Lab
from labwright.compute.runs.ingest import begin_attempt
from labwright.domain.actor import PERSON
from labwright.domain.clock import epoch_seconds
from labwright.domain.cluster import Cluster, ClusterType
from labwright.domain.run import RunStatus
from labwright.domain.sweep import Sweep, SweepMethod
from labwright.services.runs.new_run import NewRun
from labwright.services.sweeps import verbs as sweeps
from labwright.services.sweeps.extension import Extension
from labwright.services.sweeps.new_sweep import NewSweep
from labwright.services.sweeps.supply import Supply
from labwright.store import sweeps as stored
from tests.support.lab import end, lab_in, move
from tests.support.sweeping import METRIC


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as lab:
        lab.cluster.current = Cluster(type=ClusterType.SLURM, max_parallel=8)
        yield lab


def make(
    lab: Lab,
    method: SweepMethod,
    *,
    gpus: int = 0,
    nodes: int | None = None,
    slurm: dict[str, Any] | None = None,
    limit: float | None = None,
    **facts: Any,
) -> Sweep:
    parameters = {"lr": {"min": 0.1, "max": 1.0}}
    wanted = NewSweep(
        name="s",
        base_command="true",
        parameters=parameters,
        method=method,
        common=NewRun(command="", gpus=gpus, nodes=nodes, slurm=slurm, time_limit_seconds=limit),
        metric=METRIC,
        auto_start=True,
        sampling_seed=1,
        again=True,
        **facts,
    )
    return sweeps.create(lab, wanted, PERSON)


def queued_now(lab: Lab, sweep: Sweep) -> int:
    Supply(lab, sweep).top_up()
    return stored.count_by_status(lab.db.reader(), sweep.id)["queued"]


def at_work(lab: Lab, method: SweepMethod, **facts: Any) -> int:
    return queued_now(lab, make(lab, method, **facts))


def end_one(lab: Lab, sweep: Sweep, status: RunStatus = RunStatus.FINISHED, **facts: Any) -> None:
    """End the oldest run that has not ended."""
    run = min(stored.unended_runs(lab.db.reader(), sweep.id), key=lambda run: run.trial or 0)
    assert run.status is RunStatus.QUEUED
    end(lab, run, status, series={"loss": [run.params["lr"] ** 2]}, **facts)


def test_adaptive_sweep_requests_a_few_runs_and_learns_before_the_next(lab: Lab) -> None:
    assert at_work(lab, SweepMethod.ADAPTIVE, max_runs=60) == 8, "as many as the cluster bears"
    assert at_work(lab, SweepMethod.ADAPTIVE, max_runs=24) == 4, "so that it looks at results six times at least"
    assert at_work(lab, SweepMethod.ADAPTIVE, max_runs=3) == 1
    assert at_work(lab, SweepMethod.ADAPTIVE, max_runs=60, parallel=20) == 20, "or as many as it says itself"


def test_budget_of_time_limits_parallel_runs_but_a_budget_of_runs_does_not(lab: Lab) -> None:
    assert at_work(lab, SweepMethod.RANDOM, max_runs=30, budget={"wall_seconds": 3600}) == 8
    assert at_work(lab, SweepMethod.RANDOM, max_runs=30, budget={"runs": 20}) == 20
    assert at_work(lab, SweepMethod.RANDOM, max_runs=30) == 30


def test_one_run_goes_ahead_under_a_gpu_hour_budget_while_the_duration_is_unknown(lab: Lab) -> None:
    """All of them at once would exceed it together, and none could be called back."""
    asked: dict[str, Any] = {"max_runs": 30, "budget": {"gpu_hours": 5}, "gpus": 1}
    assert at_work(lab, SweepMethod.RANDOM, limit=600.0, **asked) == 8
    sweep = make(lab, SweepMethod.RANDOM, **asked)
    assert queued_now(lab, sweep) == 1
    hours = {"started_at": "2026-01-01T00:00:00.000Z", "ended_at": "2026-01-01T01:00:00.000Z"}
    end_one(lab, sweep, RunStatus.FAILED, **{**hours, "ended_at": "2026-01-01T00:00:01.000Z"})
    assert queued_now(lab, sweep) == 1, "what fails at once does not tell"
    end_one(lab, sweep, **hours)
    assert queued_now(lab, sweep) == 3, "an hour each, and four are left but for a second"


def test_gpu_hours_count_the_cards_of_every_node_however_requested(lab: Lab) -> None:
    """One hour each on four cards: two of them fit into ten GPU-hours, a third does not."""
    asked: dict[str, Any] = {"max_runs": 30, "budget": {"gpu_hours": 10}, "limit": 3600.0}
    for cards in ({"gpus": 2, "nodes": 2}, {"slurm": {"gres": "gpu:4"}}):
        sweep = make(lab, SweepMethod.RANDOM, **cards, **asked)
        assert queued_now(lab, sweep) == 2
        assert "use no GPU" not in "".join(sweep.warnings)
    assert "use no GPU" in "".join(make(lab, SweepMethod.RANDOM, **asked).warnings)


def test_pending_job_may_start_when_the_number_of_runs_is_used_up(lab: Lab) -> None:
    sweep = make(lab, SweepMethod.RANDOM, max_runs=30, budget={"runs": 2})
    assert queued_now(lab, sweep) == 2
    begun, pending = (run for run in stored.unended_runs(lab.db.reader(), sweep.id) if run.status is RunStatus.QUEUED)
    move(lab, begun, *_BEGINS[RunStatus.QUEUED])
    pending = move(lab, pending, RunStatus.LAUNCHING)
    supply = Supply(lab, sweep)
    assert (supply.top_up(), supply.cannot_go_on(), supply.at_work) == (None, None, 1)
    move(lab, pending, RunStatus.RUNNING)
    assert (Supply(lab, sweep).top_up() or ("",))[0] == "runs"


def test_pending_job_may_not_start_if_too_little_time_is_left(lab: Lab) -> None:
    """Two runs of half an hour fit into an hour, until the first uses all of it except a minute."""
    sweep = make(lab, SweepMethod.RANDOM, max_runs=30, gpus=1, limit=1800.0, budget={"runs": 2, "gpu_hours": 1})
    assert queued_now(lab, sweep) == 2
    end_one(lab, sweep, started_at="2026-01-01T00:00:00.000Z", ended_at="2026-01-01T00:59:00.000Z")
    (pending,) = (run for run in stored.unended_runs(lab.db.reader(), sweep.id) if run.status is RunStatus.QUEUED)
    move(lab, pending, RunStatus.LAUNCHING)
    assert (Supply(lab, sweep).top_up() or ("",))[0] == "gpu_hours"


def test_remaining_time_of_active_runs_is_reported_if_hours_are_short(lab: Lab) -> None:
    """The pause does not depend on it, but a person who is asked for more hours has to know."""
    sweep = make(lab, SweepMethod.RANDOM, max_runs=30, gpus=1, limit=1800.0, budget={"gpu_hours": 1})
    assert queued_now(lab, sweep) == 2
    end_one(lab, sweep, started_at="2026-01-01T00:00:00.000Z", ended_at="2026-01-01T00:54:00.000Z")
    (other,) = (run for run in stored.unended_runs(lab.db.reader(), sweep.id) if run.status is RunStatus.QUEUED)
    move(lab, other, *_BEGINS[RunStatus.QUEUED])
    part, words = Supply(lab, sweep).top_up() or ("", "")
    assert part == "gpu_hours" and "running runs may use 0.9 more" in words


def test_gpu_hours_of_attempts_ended_by_slurm_are_counted(lab: Lab) -> None:
    """A run preempted after fifty minutes has used them, even while it waits to restart."""
    sweep = make(lab, SweepMethod.RANDOM, max_runs=30, gpus=1, limit=600.0, budget={"gpu_hours": 1})
    assert queued_now(lab, sweep) == 6
    run = stored.unended_runs(lab.db.reader(), sweep.id)[0]
    for attempt in (2, 3):
        assert Supply(lab, sweep).overrun is None
        run = move(lab, run, *_BEGINS[run.status], started_at="2026-01-01T00:00:00.000Z")
        with lab.db.transaction() as tx:
            run = begin_attempt(tx, run, attempt, "requeued", until=epoch_seconds("2026-01-01T00:50:00.000Z"))
        assert (run.status, run.started_at, run.earlier_seconds) == (RunStatus.LAUNCHING, None, 3000.0 * (attempt - 1))
    assert (Supply(lab, sweep).overrun or ("",))[0] == "gpu_hours"


_BEGINS = {
    RunStatus.QUEUED: (RunStatus.LAUNCHING, RunStatus.RUNNING),
    RunStatus.LAUNCHING: (RunStatus.RUNNING,),
}


def test_configuration_requested_during_an_extension_has_the_new_seeds_too(lab: Lab) -> None:
    sweep = make(lab, SweepMethod.ADAPTIVE, max_runs=60, seeds=(0, 1))
    supply = Supply(lab, sweep)
    sweeps.extend(lab, sweep.id, Extension(seeds=(2,)), PERSON)
    supply.top_up()
    assert {row.seed for row in stored.runs_of(lab.db.reader(), sweep.id)} == {0, 1, 2}


def test_ends_seen_together_lead_to_the_same_configurations_as_one_by_one(tmp_path: Path) -> None:
    """The server may have been down meanwhile. Ten are drawn at random before the sampler learns."""
    asked = []
    for at_once in (1, 3):
        with lab_in(tmp_path / str(at_once)) as lab:
            sweep = make(lab, SweepMethod.ADAPTIVE, max_runs=24, parallel=3)
            Supply(lab, sweep).top_up()
            for ended in range(18):
                end_one(lab, sweep, ended_at=f"2026-01-01T00:00:{ended:02}.000Z")
                if (ended + 1) % at_once == 0:
                    Supply(lab, sweep).top_up()
            rows = stored.runs_of(lab.db.reader(), sweep.id)
            asked.append(sorted((row.trial, row.params) for row in rows))
    assert asked[0] == asked[1]
    assert len(asked[0]) == 21
