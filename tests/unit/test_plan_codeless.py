"""A workflow without its code: values of its own classes pass through, and none of its code is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labwright.domain.errors import Conflict
from labwright.planning.run_mode.codeless import without_code
from labwright.planning.run_mode.execution import plain
from labwright.planning.run_mode.experiment_step import listed_runs
from labwright.workflow import Experiment, RunResult, Sealed, Step, load_in_child, run

MODULE = "codeless_workflow"
SOURCE = """
from dataclasses import dataclass
from typing import NamedTuple

from labwright.workflow import Experiment, Metric, Output, Workflow, task


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Box:
    weight: float


@task
def numbers(count: int) -> list[int]:
    return list(range(count))


@task
def boxed(number: int) -> Box:
    return Box(number / 2)


@task
def weighed(boxes: list[Box]) -> Pair:
    return Pair(sum(int(2 * box.weight) for box in boxes), "kg")


@task
def worded(left: int, right: str, accuracy: list[float]) -> str:
    return f"{left} {right} {accuracy}"


@task
def heavy(left: int) -> bool:
    return left > 100


@task
def unwanted(left: int) -> int:
    return left + 1


@task
def accuracies(runs: list) -> list[float]:
    return [run["metrics"]["acc"] for run in runs]


trained = Experiment(
    "trained", "true {lr} {words}", Metric("acc", "maximize"), grid={"lr": [1, 2]}, produces=["acc"],
    baseline={"lr": 3}, switches={"fast": ("--fast", "")},
)


def create_workflow():
    made = Workflow("codeless")
    made.add(numbers, inputs={"count": 4}, name="numbers")
    made.map(boxed, over={"number": Output("numbers")}, name="boxed")
    made.add(weighed, inputs={"boxes": Output("boxed")}, name="weighed")
    made.add(trained, inputs={"words": Output("weighed", "right")}, name="trained")
    made.add(accuracies, inputs={"runs": Output("trained", "runs")}, name="accuracies")
    pair = {"left": Output("weighed", "left"), "right": Output("weighed", "right")}
    made.add(worded, inputs={**pair, "accuracy": Output("accuracies")}, name="worded")
    made.add(heavy, inputs={"left": Output("weighed", "left")}, name="heavy")
    made.add(unwanted, inputs={"left": Output("weighed", "left")}, name="unwanted", when=Output("heavy"))
    made.result("words", Output("worded"))
    return made
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    return tmp_path


def described(source: Path) -> dict[str, Any]:
    answer = load_in_child(sys.executable, source, MODULE, "create_workflow")
    assert answer["ok"], answer
    return dict(answer["workflow"])


def codeless_run(source: Path, description: dict[str, Any], done: list[str]) -> RunResult:
    def perform(step_id: str, inputs: dict[str, Sealed]) -> Sealed:
        done.append(step_id)
        given, answer = source / "inputs.json", source / "answer.json"
        given.write_text(json.dumps({name: value.encoded for name, value in inputs.items()}))
        words = [str(source), MODULE, "create_workflow", step_id, str(given), str(answer)]
        subprocess.run([sys.executable, "-m", "labwright.workflow.perform", *words], check=True)
        return Sealed(json.loads(answer.read_text())["value"])

    def experiment(step: Step, inputs: dict[str, Sealed]) -> dict[str, Any]:
        done.append(step.id)
        assert plain(inputs["words"].encoded) == "kg"
        found = [
            {"run_id": "r", "params": one.params, "seed": None, "status": "finished", "metrics": {"acc": 0.5}}
            for one in step.work.configurations()
        ]
        return {"runs": found, "metric": "acc", "direction": "maximize"}

    workflow = without_code(description, perform)
    return run(workflow, source / "store", concurrency=1, run_experiment=experiment, sealed=True)


def test_codeless_run_does_the_same_and_imports_nothing(source: Path) -> None:
    done: list[str] = []
    result = codeless_run(source, described(source), done)
    assert result.results == {"words": "6 kg [0.5, 0.5, 0.5]"}
    assert result.steps["unwanted"].status == "skipped"
    assert sorted(done) == sorted(["numbers", *["boxed"] * 4, "weighed", "trained", "accuracies", "worded", "heavy"])
    assert MODULE not in sys.modules


def test_finished_work_is_not_repeated_but_changed_code_is(source: Path) -> None:
    codeless_run(source, described(source), [])
    done: list[str] = []
    codeless_run(source, described(source), done)
    assert done == []
    (source / f"{MODULE}.py").write_text(SOURCE.replace("left > 100", "left > 1000"))
    codeless_run(source, described(source), done)
    assert done == ["heavy"]


def test_experiment_is_the_declared_one(source: Path) -> None:
    step = next(
        step for step in without_code(described(source), lambda _id, _inputs: Sealed(0)).steps if step.id == "trained"
    )
    assert [one.params for one in step.work.configurations()] == [{"lr": 3}, {"lr": 1}, {"lr": 2}]
    assert step.work.switches == {"fast": ["--fast", ""]}
    listed = listed_runs(step.work, {"words": "a b"})
    assert [(run.params, run.seed, run.command) for run in listed] == [
        ({"lr": lr}, None, f"true {lr} 'a b'") for lr in (3, 1, 2)
    ]


def test_grid_of_seeds_makes_runs_with_those_seeds() -> None:
    experiment = Experiment(name="noise", command="train --seed {seed}", grid={"seed": [1, 2]})
    assert [(run.seed, run.command) for run in listed_runs(experiment, {})] == [
        (seed, f"train --seed {seed}") for seed in (1, 2)
    ]


@pytest.mark.parametrize(
    "wrong", [{}, {"name": "x", "steps": [{}], "results": {}}, {"name": "x", "steps": 3, "results": {}}]
)
def test_invalid_description_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Conflict):
        without_code(wrong, lambda _id, _inputs: Sealed(0))


def test_class_named_by_a_value_is_not_looked_up() -> None:
    assert plain({"$dataclass": "os:nothing", "fields": {"a": {"$float": "inf"}}}) == {"a": float("inf")}
    assert plain({"$tuple": "subprocess:Popen", "items": [1, {"$path": "/x"}]}) == [1, "/x"]
