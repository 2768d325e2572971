"""The rules of sweeps: moves, budgets, early stopping, parameter importance, and significance of the best."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest

from labwright.domain.errors import IllegalMove
from labwright.domain.run import Run, RunStatus, copies
from labwright.domain.search.budget import BudgetUsage, needed_budget, raise_budget, shortage, used_up
from labwright.domain.search.early_stop import BestCurve, checkpoint, reason_to_stop
from labwright.domain.search.results import ConfigurationResult, best_so_far, importance, ranked
from labwright.domain.search.results import judge_lead as more_than_luck
from labwright.domain.sweep import Sweep, SweepStatus
from tests.unit.test_run_moves import a_run

LEGAL = {
    "draft": {"running", "stopped"},
    "running": {"paused", "completed", "stopped"},
    "paused": {"running", "completed", "stopped"},
    "completed": {"running"},
    "stopped": set(),
}


@pytest.mark.parametrize(("before", "to"), list(product(SweepStatus, SweepStatus)))
def test_sweep_makes_exactly_the_moves_of_the_table(before: SweepStatus, to: SweepStatus) -> None:
    sweep = Sweep(id="sweep-0123456789", name="n", created_at="t", created_by="person", status=before)
    if to.value in LEGAL[before.value]:
        assert sweep.move(to).status is to
    else:
        with pytest.raises(IllegalMove):
            sweep.move(to)


def test_sweep_survives_storage() -> None:
    sweep = Sweep(id="sweep-0123456789", name="n", created_at="t", created_by="p", seeds=(0, 1), warnings=("w",))
    assert Sweep.from_dict(json.loads(json.dumps(sweep.to_dict()))) == sweep


def test_copied_records_equal_those_written_by_a_run() -> None:
    base = a_run(tags=("a",), env={"A": "é"})
    variants = [{"id": f"run-{n}", "name": f"n {n}", "status": RunStatus.QUEUED, "params": {"x": n}} for n in range(3)]
    for record, variant in zip(copies(base, variants), variants, strict=True):
        run = Run.from_dict(json.loads(record.text))
        assert run.to_dict() == Run.from_dict(json.loads(json.dumps({**base.to_dict(), **variant}))).to_dict()
        assert (record.id, record.name, record.status) == (run.id, run.name, run.status)


def ledger(**facts: Any) -> BudgetUsage:
    none = {"runs": 0, "gpu_seconds": 0, "promised_gpu_seconds": 0, "wall_seconds": 0, "run_seconds": 0, "gpus": 1}
    return BudgetUsage(**{**none, **facts})


@pytest.mark.parametrize(
    ("budget", "facts", "short"),
    [
        ({"runs": 3}, {"runs": 2}, None),
        ({"runs": 3}, {"runs": 3}, "runs"),
        ({"gpu_hours": 1}, {"gpu_seconds": 1800, "run_seconds": 1800}, None),
        ({"gpu_hours": 1}, {"gpu_seconds": 1801, "run_seconds": 1800}, "gpu_hours"),
        ({"gpu_hours": 1}, {"gpu_seconds": 900, "promised_gpu_seconds": 1000, "run_seconds": 1800}, "gpu_hours"),
        ({"gpu_hours": 1}, {"run_seconds": 1800, "gpus": 4}, "gpu_hours"),
        ({"wall_seconds": 60}, {"wall_seconds": 30, "run_seconds": 29}, None),
        ({"wall_seconds": 60}, {"wall_seconds": 30, "run_seconds": 31}, "wall_seconds"),
        ({}, {"runs": 10**6, "gpu_seconds": 10**9}, None),
    ],
)
def test_run_is_held_back_if_it_would_exceed_the_budget(budget: dict[str, Any], facts: Any, short: str | None) -> None:
    found = shortage(budget, ledger(**facts))
    assert (found and found[0]) == short


@pytest.mark.parametrize(
    ("budget", "facts", "part"),
    [
        ({"runs": 3}, {"runs": 3}, None),
        ({"gpu_hours": 1}, {"gpu_seconds": 3599, "promised_gpu_seconds": 900, "run_seconds": 1800}, None),
        ({"gpu_hours": 1}, {"gpu_seconds": 3600}, "gpu_hours"),
        ({"wall_seconds": 60}, {"wall_seconds": 60, "run_seconds": 31}, None),
        ({"wall_seconds": 60}, {"wall_seconds": 61}, "wall_seconds"),
    ],
)
def test_budget_is_used_up_by_past_runs_and_not_by_reserved_time(
    budget: dict[str, Any], facts: Any, part: str | None
) -> None:
    found = used_up(budget, ledger(**facts))
    assert (found and found[0]) == part


def test_budget_is_raised_by_its_first_amount_and_enough_for_another_run() -> None:
    assert raise_budget({"runs": 6, "gpu_hours": 1}, {"runs": 3}, "runs") == {"runs": 9, "gpu_hours": 1}
    late = ledger(wall_seconds=41.2, run_seconds=41.2)
    enough = raise_budget({"wall_seconds": 6}, {"wall_seconds": 6}, "wall_seconds", needed_budget("wall_seconds", late))
    assert shortage(enough, late) is None
    hungry = ledger(gpu_seconds=7200.1, promised_gpu_seconds=0.1, run_seconds=3600.3, gpus=2)
    enough = raise_budget({"gpu_hours": 1}, {"gpu_hours": 1}, "gpu_hours", needed_budget("gpu_hours", hungry))
    assert shortage(enough, hungry) is None


def curve(*values: float, goal: str = "min") -> BestCurve:
    return BestCurve.of(range(1, len(values) + 1), values, goal)


MEDIAN = {"method": "median", "after_runs": 3}
HALVING = {"method": "halving", "first_step": 2, "factor": 2}


def test_run_worse_than_the_median_at_the_same_step_ends() -> None:
    others = [curve(5, 4, 3), curve(5, 3, 2), curve(5, 2, 1)]
    assert reason_to_stop(MEDIAN, "min", curve(5, 4), others, 2) == "4 at step 2, the median of 3 other runs is 3"
    assert reason_to_stop(MEDIAN, "min", curve(5, 3), others, 2) == ""
    assert reason_to_stop(MEDIAN, "min", curve(5, 4), others[:2], 2) is None
    assert reason_to_stop(MEDIAN, "max", curve(1, 1, goal="max"), [curve(*[2] * 3, goal="max")] * 3, 2)


def test_one_noisy_step_decides_nothing_and_nan_is_never_best() -> None:
    others = [curve(5, 3, 3)] * 3
    assert reason_to_stop(MEDIAN, "min", curve(5, 2, 99), others, 3) == ""
    assert reason_to_stop(MEDIAN, "min", curve(float("nan"), float("nan")), others, 2)


def test_halving_keeps_the_best_part_at_each_rung() -> None:
    assert [checkpoint(HALVING, step) for step in (1, 2, 3, 4, 9)] == [None, 2, 2, 4, 8]
    others = [curve(9, 9), curve(1, 1), curve(2, 2)]
    assert reason_to_stop(HALVING, "min", curve(3, 3), others, 2) == "3 at step 2, 2 of 3 other runs were better"
    assert reason_to_stop(HALVING, "min", curve(1.5, 1.5), others, 2) == ""


def configuration(trial: int, *values: float, **params: Any) -> ConfigurationResult:
    made = ConfigurationResult(label=str(trial), trial=trial, params=params, ended_at=f"{trial:04}")
    made.samples = {seed: [value] for seed, value in enumerate(values)}
    made.settle()
    return made


def test_mean_over_seeds_decides_and_not_the_luckiest_seed() -> None:
    lucky, steady = configuration(0, 0.1, 3.0, 3.1), configuration(1, 1.0, 1.1, 0.9)
    assert ranked([lucky, steady, configuration(2)], "min") == [steady, lucky, configuration(2)]
    assert ranked([lucky, steady], "max")[0] is lucky


def test_seed_that_ran_twice_counts_once() -> None:
    found = configuration(0)
    found.samples = {0: [1.0, 3.0], 1: [4.0]}
    found.settle()
    assert (found.mean, found.n) == (3.0, 2)


@pytest.mark.parametrize(
    ("logged", "words"),
    [
        ([], "No run has finished with a value of loss yet."),
        (["acc", "loss"], "No run has finished with a value of loss yet (NaN and infinity do not count)."),
        (["acc", "los"], "No run has logged loss. Logged metrics: acc, los."),
    ],
)
def test_without_any_value_the_logged_metrics_are_named(logged: list[str], words: str) -> None:
    assert more_than_luck([configuration(0)], "loss", logged).text == words


@pytest.mark.parametrize(
    ("best", "second", "kind"),
    [
        ((1.0, 1.01, 0.99), (2.0, 2.01, 1.99), "clear"),
        ((1.0, 1.5, 0.5), (1.1, 1.6, 0.6), "within_noise"),
        ((1.0,), (2.0,), "unknown"),
        ((1.0, 1.1), (2.0,), "unknown"),
        ((1.0, 1.0), (1.0, 1.0), "within_noise"),
        ((1.0, 1.0), (2.0, 2.0), "clear"),
    ],
)
def test_lead_is_described_by_its_significance(best: tuple[float, ...], second: tuple[float, ...], kind: str) -> None:
    found = more_than_luck([configuration(0, *best), configuration(1, *second)], "loss")
    assert found.kind == kind


def test_noisier_configuration_that_may_be_as_good_is_reported() -> None:
    best, second, noisy = configuration(0, 1.0, 1.01), configuration(1, 2.0, 2.01), configuration(2, 1.0, 4.0)
    said = more_than_luck([best, second, noisy], "loss")
    assert said.kind == "clear"
    assert said.text.endswith("1 of the next 2 configurations do not differ from the best significantly.")


def test_best_so_far_never_gets_worse() -> None:
    source = random.Random(1)
    found = best_so_far([configuration(n, source.random()) for n in range(50)], "min")
    assert [best for _, best in found] == sorted((best for _, best in found), reverse=True)
    assert found[-1][0] == 50


def test_important_parameters_are_distinguished_from_unimportant_ones() -> None:
    source = random.Random(1)
    params = [{"lr": source.random(), "noise": source.random(), "kind": source.choice("ab")} for _ in range(200)]
    values = [abs(p["lr"] - 0.3) + (0.2 if p["kind"] == "a" else 0) + 0.01 * source.random() for p in params]
    values[0] = 1e30  # a run that diverged
    found = importance(params, values)
    assert found is not None
    assert next(iter(found)) == "lr"
    assert found["lr"] > 0.4
    assert found["kind"] > 0.1
    assert found["noise"] < 0.05
    assert importance(params[:5], values[:5]) is None


def test_few_configurations_can_show_that_the_best_is_in_between() -> None:
    rates = [n / 9 for n in range(10)]
    found = importance([{"lr": rate} for rate in rates], [abs(rate - 0.5) for rate in rates])
    assert found is not None
    assert found["lr"] > 0.3
