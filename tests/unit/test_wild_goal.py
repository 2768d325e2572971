"""What is read from the goal of a wild loop: its criterion, its search space, and questions."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labwright.agent.wild.criterion import criterion_of, is_met, read_criterion
from labwright.agent.wild.experiment import Experiment
from labwright.agent.wild.goal import steered, understand
from labwright.agent.wild.wanted import NewWild
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.run import RunStatus
from labwright.domain.search.results import ConfigurationResult
from labwright.planning.scan import ProjectScan, scan_project
from tests.support.wilding import write_project


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> ProjectScan:
    return scan_project(write_project(tmp_path_factory.mktemp("goals") / "project"))


@pytest.mark.parametrize(
    ("goal", "threshold", "way"),
    [
        ("reach val_acc 0.9", 0.9, ""),
        ("test_mse below 0.02", 0.02, "min"),
        ("get val_acc above 0.9 by tuning lr", 0.9, "max"),
        ("val_acc >= 0.85 with lr between 0.01 and 1", 0.85, "max"),
        ("reach a validation accuracy of 90% please", 0.9, ""),
        ("bring the val_loss down to 1.5e-3", 0.0015, ""),
        ("reach 0.9 val_acc", 0.9, ""),
        ("loss at most .5", 0.5, "min"),
    ],
)
def test_number_in_a_goal_is_its_criterion(goal: str, threshold: float, way: str) -> None:
    found = read_criterion(goal)
    assert found is not None
    assert (found.threshold, found.way) == (threshold, way)


@pytest.mark.parametrize("goal", ["improve val_acc", "lr 0.1 and 0.2, highest val_acc", "tune lr between 0.1 and 1"])
def test_flag_values_are_not_a_criterion(goal: str) -> None:
    assert read_criterion(goal) is None


@pytest.mark.parametrize(
    ("goal", "criterion", "budget"),
    [
        ("reach val_acc 0.9 by tuning lr with at most 6 runs", "val_acc at least 0.9", {"runs": 6}),
        ("reach a val_acc of 90% in under 20 runs", "val_acc at least 90 %", {"runs": 20}),
        ("reach val_acc 0.9 in less than 2 hours", "val_acc at least 0.9", {"wall_seconds": 7200.0}),
        ("tune lr over 0.1, 0.2, 0.4 and reach val_acc 0.9", "val_acc at least 0.9", {}),
        ("maximize val_acc with at most 12 runs", "val_acc as high as it goes", {"runs": 12}),
        ("improve val_acc, 3 seeds", "val_acc as high as it goes", {}),
        ("improve val_acc from 0.8 to 0.9", "val_acc at least 0.9", {}),
        ("val_acc = 0.9, lr = 0.1 or 0.2", "val_acc at least 0.9", {}),
        ("val acc should be 90 percent or better", "val_acc at least 90 %", {}),
        ("beat 0.9 val_acc", "val_acc at least 0.9", {}),
    ],
)
def test_budget_or_flag_value_is_not_taken_as_the_criterion(
    scan: ProjectScan, goal: str, criterion: str, budget: dict[str, float]
) -> None:
    found = understand(NewWild(goal=goal), scan)
    assert found.criterion["text"].startswith(criterion)
    assert found.budget == budget


@pytest.mark.parametrize(
    "goal",
    [
        "reach val_acc 0.9 with lr below 0.1",
        "keep the learning rate above 0.2 and reach val_acc 0.9",
        "val_acc 0.9, lr > 1",
    ],
)
def test_range_with_one_end_leads_to_a_question(scan: ProjectScan, goal: str) -> None:
    with pytest.raises(Invalid, match="one end of a range"):
        understand(NewWild(goal=goal), scan)


def test_two_criteria_lead_to_a_question(scan: ProjectScan) -> None:
    with pytest.raises(Invalid, match="two criteria"):
        understand(NewWild(goal="val_acc above 0.9 and val_acc at most 0.99"), scan)


HOSTILE = ("x" * 20_000, "reach " * 4000, "a b " * 5000, "x > 1" * 4000, f"reach a {'1' * 19_000}")


@pytest.mark.parametrize("goal", HOSTILE, ids=["word", "reach", "words", "limits", "digits"])
def test_hostile_goal_is_read_quickly(goal: str) -> None:
    began = time.process_time()
    read_criterion(goal)
    assert time.process_time() - began < 1.0


def configuration(*values: float) -> ConfigurationResult:
    found = ConfigurationResult(label="1", trial=None)
    for seed, value in enumerate(values):
        found.add(f"run-{seed}", RunStatus.FINISHED, seed, None, value)
    found.settle()
    return found


def test_one_lucky_run_does_not_meet_the_criterion() -> None:
    wanted = criterion_of(read_criterion("reach val_acc 0.9"), {"key": "val_acc", "goal": "max"})
    assert not is_met(wanted, "max", configuration(0.99), seeds=3)
    assert is_met(wanted, "max", configuration(0.91, 0.9), seeds=3)
    assert not is_met(wanted, "max", configuration(0.95, 0.8), seeds=3)
    assert is_met(wanted, "max", configuration(0.99), seeds=1)


def test_percent_fits_a_script_that_counts_to_a_hundred() -> None:
    wanted = criterion_of(read_criterion("reach val_acc 90%"), {"key": "val_acc", "goal": "max"})
    assert is_met(wanted, "max", configuration(91.0, 92.0), seeds=3)
    assert not is_met(wanted, "max", configuration(50.0, 52.0), seeds=3)
    assert is_met(wanted, "max", configuration(0.91, 0.92), seeds=3)


@pytest.mark.parametrize(
    ("goal", "parameters"),
    [
        ("reach val_acc 0.9 by tuning lr", {"lr": {"min": 0.01, "max": 1.0, "log": True}}),
        ("lr 0.1, 0.2 or 0.4, highest val_acc", {"lr": [0.1, 0.2, 0.4]}),
        (
            "improve val_acc",
            {"lr": {"min": 0.01, "max": 1.0, "log": True}, "width": {"min": 2, "max": 32, "log": True, "int": True}},
        ),
    ],
)
def test_search_space_follows_from_the_goal(scan: ProjectScan, goal: str, parameters: dict[str, Any]) -> None:
    found = understand(NewWild(goal=goal), scan)
    assert found.parameters == parameters
    assert found.metric == {"key": "val_acc", "goal": "max", "use": "last"}
    assert found.seeds == (0, 1, 2)


def test_range_in_the_goal_is_searched_between_its_ends(scan: ProjectScan) -> None:
    found = understand(NewWild(goal="reach val_acc 0.9 with lr between 0.01 and 0.5, width 16, at most 20 runs"), scan)
    assert found.parameters == {"lr": {"min": 0.01, "max": 0.5, "log": True, "int": False}}
    assert found.fixed == {"width": 16}
    assert found.budget == {"runs": 20}
    assert found.criterion["threshold"] == 0.9


def test_explicit_options_win_over_the_goal(scan: ProjectScan) -> None:
    metric = {"key": "val_loss", "goal": "min"}
    found = understand(NewWild(goal="make it better", metric=metric, parameters={"lr": [1, 2]}, seeds=(7,)), scan)
    assert (found.metric["key"], found.parameters, found.seeds) == ("val_loss", {"lr": [1, 2]}, (7,))


@pytest.mark.parametrize(
    ("goal", "given", "words"),
    [
        ("hello there", {}, "Nothing in that says"),
        ("reach val_acc 0.9 in other.py", {}, "other.py"),
        ("reach bleu 0.3 by tuning lr", {}, "names no metric"),
        ("reach val_acc 0.9", {"parameters": {"nope": [1, 2]}}, "no flag nope"),
        ("reach val_acc 0.9", {"parameters": {"seed": [1, 2]}}, "no flag seed to search"),
        ("reach val_acc 0.9 by tuning width, lr 1e400", {}, "1e400 is beyond"),
        ("reach val_acc 0.9 by tuning momentum", {}, "no flag for momentum"),
        ("reach val_acc 0.9 by tuning the lerning_rate", {}, "no flag for lerning_rate"),
    ],
)
def test_unreadable_goal_leads_to_a_question(scan: ProjectScan, goal: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid, match=words) as refused:
        understand(NewWild(goal=goal, **given), scan)
    assert refused.value.hint


def test_project_without_a_script_leads_to_a_question(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="No script that can be started"):
        understand(NewWild(goal="reach val_acc 0.9 by tuning lr"), scan_project(tmp_path))


def test_steering_accepts_ranges_and_values(scan: ProjectScan) -> None:
    searched, values = steered("try lr between 0.1 and 0.5", scan, "train.py")
    assert searched["lr"]["min"] == 0.1 and values == {}
    assert steered("lr 0.25", scan, "train.py") == ({}, {"lr": 0.25})
    with pytest.raises(Invalid, match="found no flag"):
        steered("be more careful", scan, "train.py")
    with pytest.raises(Invalid, match="1e400 is beyond"):
        steered("lr 1e400", scan, "train.py")


def test_missing_environment_is_reported_with_the_command_that_makes_it(scan: ProjectScan) -> None:
    line = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
    unmade = replace(scan, environment=replace(scan.environment, chosen=None, create=line))
    with pytest.raises(Conflict) as refused:
        Experiment.in_scan(unmade, scan.entry_points[0].path, {})
    assert refused.value.hint == f"Make it: {line}"
