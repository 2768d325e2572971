"""The sampler of adaptive sweeps: close to the optimum, better than chance, and repeatable after a restart."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from labwright.domain.search.configurations import config_hash, draw_many
from labwright.domain.search.space import Space, parse_space
from labwright.services.sweeps.adaptive import Trial, TrialState, propose

BOWL = parse_space({"x": {"min": -5.0, "max": 5.0}, "y": {"min": -5.0, "max": 5.0}})
RATES = parse_space({"lr": {"min": 1e-5, "max": 1.0, "log": True}, "drop": {"min": 0.0, "max": 0.9}})
MIXED = parse_space(
    {
        "optimizer": ["adam", "sgd"],
        "momentum": {"min": 0.0, "max": 0.99, "when": {"optimizer": "sgd"}},
        "layers": [[64], [64, 64], None],
        "width": {"min": 16, "max": 256, "step": 16},
        "depth": {"min": 1, "max": 8, "int": True},
    }
)


def bowl(config: dict[str, Any]) -> float:
    return 1 + (config["x"] - 2) ** 2 + (config["y"] + 1) ** 2


def rates(config: dict[str, Any]) -> float:
    return math.exp(-((math.log10(config["lr"]) + 2.5) ** 2 / 2 + (config["drop"] - 0.3) ** 2 * 8))


def mixed(config: dict[str, Any]) -> float:
    return abs(config["width"] - 128) / 128 + config["depth"] / 8 - config.get("momentum", 0)


def searched(
    space: Space, goal: str, function: Callable[[dict[str, Any]], float], seed: int, count: int
) -> list[Trial]:
    history: list[Trial] = []
    for number in range(count):
        config = propose(space, goal, history, seed, number)
        assert config is not None
        history.append(Trial(number, config, TrialState.DONE, function(config)))
    return history


@pytest.mark.parametrize("seeds", [3, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("space", "goal", "function", "optimum"), [(BOWL, "min", bowl, 1.0), (RATES, "max", rates, 1.0)]
)
def test_sixty_runs_end_within_five_percent_of_the_optimum(
    space: Space, goal: str, function: Callable[[dict[str, Any]], float], optimum: float, seeds: int
) -> None:
    better = min if goal == "min" else max
    found, by_chance = [], []
    for seed in range(seeds):
        found.append(better(trial.value or 0.0 for trial in searched(space, goal, function, seed, 60)))
        by_chance.append(better(function(config) for config in draw_many(space, seed, 60, ())))
    assert sum(abs(value - optimum) <= 0.05 * abs(optimum) for value in found) >= 0.9 * seeds, found
    assert better(statistics.median(found), statistics.median(by_chance)) == statistics.median(found)


def test_same_history_gives_the_same_result_and_the_seed_matters() -> None:
    history = searched(MIXED, "min", mixed, 1, 15)
    assert propose(MIXED, "min", history, 1, 15) == propose(MIXED, "min", list(reversed(history)), 1, 15)
    assert propose(MIXED, "min", history, 1, 15) != propose(MIXED, "min", history, 2, 15)


def test_no_configuration_repeats_and_conditions_hold() -> None:
    history = searched(MIXED, "min", mixed, 3, 40)
    assert len({config_hash(trial.config) for trial in history}) == 40
    for trial in history:
        assert ("momentum" in trial.config) == (trial.config["optimizer"] == "sgd")
        assert trial.config["width"] % 16 == 0
        assert trial.config["layers"] in ([64], [64, 64], None)


@pytest.mark.parametrize("state", [TrialState.OPEN, TrialState.FAILED])
def test_runs_without_a_value_do_no_harm(state: TrialState) -> None:
    history = searched(BOWL, "min", bowl, 1, 12)
    history = [*history[:10], *(Trial(trial.number, trial.config, state) for trial in history[10:])]
    assert propose(BOWL, "min", history, 1, 12) is not None


def test_run_stopped_early_counts_less_than_a_finished_one() -> None:
    history = [*searched(BOWL, "min", bowl, 1, 12), Trial(12, {"x": 0.0, "y": 0.0}, TrialState.STOPPED_EARLY, 3.0)]
    assert propose(BOWL, "min", history, 1, 13) is not None


def test_extended_space_keeps_results_that_fit() -> None:
    wider = parse_space({"x": {"min": -9.0, "max": 9.0}, "y": {"min": 0.0, "max": 5.0}})
    found = propose(wider, "min", searched(BOWL, "min", bowl, 1, 12), 1, 12)
    assert found is not None
    assert 0 <= found["y"] <= 5


def test_fully_tried_space_has_nothing_left() -> None:
    space = parse_space({"a": [1, 2], "b": [True, False]})
    history = searched(space, "min", lambda config: config["a"], 1, 4)
    assert propose(space, "min", history, 1, 4) is None


def test_optuna_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, labwright.server.app, labwright.cli.main; print({'optuna', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
