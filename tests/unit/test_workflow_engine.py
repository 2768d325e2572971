"""Running a workflow: order, fan-out, failures that stay in their branch, retries, time-outs, nothing done twice."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest

from labwright.workflow import (
    Experiment,
    InvalidWorkflow,
    Metric,
    Output,
    Store,
    StoreInUse,
    Suspended,
    Workflow,
    run,
    run_async,
    task,
)

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


class Scores(TypedDict):
    best: float
    table: list[float]


@dataclass
class Point:
    x: float
    where: Path


@task
def numbers(count: int) -> list[float]:
    CALLS.append("numbers")
    return [float(index) for index in range(count)]


@task
def square(value: float, offset: float = 0.0) -> float:
    CALLS.append(f"square {value:g}")
    return value * value + offset


@task
def fragile(value: float) -> float:
    CALLS.append(f"fragile {value:g}")
    if value == 1.0:
        raise ValueError("one is not allowed")
    return value


@task
def score(values: list[float]) -> Scores:
    CALLS.append("score")
    return {"best": max(values), "table": values}


@task
async def doubled(value: float) -> float:
    await asyncio.sleep(0)
    CALLS.append("doubled")
    return value * 2


@task
def is_large(value: float) -> bool:
    return value > 10


def fan(workflow: Workflow, **options: Any) -> None:
    values = workflow.add(numbers, inputs={"count": 4})
    squares = workflow.map(square, over={"value": values.output()}, **options)
    scores = workflow.add(score, inputs={"values": squares.output()})
    final = workflow.add(doubled, inputs={"value": scores.output("best")})
    workflow.result("final", final.output())


def built(build: Any, **options: Any) -> Workflow:
    workflow = Workflow("w")
    build(workflow, **options)
    return workflow


@pytest.mark.parametrize("concurrency", [1, 4])
def test_values_are_passed_by_name_through_fan_out_and_fan_in(tmp_path: Path, concurrency: int) -> None:
    result = run(built(fan), tmp_path, concurrency=concurrency)
    assert result.status == "finished" and result.results == {"final": 18.0}
    assert result.value("score", "table") == [0.0, 1.0, 4.0, 9.0]


def test_a_grid_of_two_inputs_gives_every_combination_in_order(tmp_path: Path) -> None:
    workflow = Workflow("w")
    workflow.map(square, over={"value": [1.0, 2.0], "offset": [0.0, 10.0]})
    assert run(workflow, tmp_path).value("square") == [1.0, 11.0, 4.0, 14.0]


def test_a_second_run_repeats_nothing(tmp_path: Path) -> None:
    run(built(fan), tmp_path)
    CALLS.clear()
    result = run(built(fan), tmp_path)
    assert CALLS == [] and result.results == {"final": 18.0}
    assert {outcome.reused for outcome in result.steps.values()} == {1, 4}


def test_only_steps_after_a_changed_input_run_again(tmp_path: Path) -> None:
    run(built(fan), tmp_path)
    CALLS.clear()
    run(built(fan, inputs={"offset": 0.0}), tmp_path)
    assert sorted(CALLS) == ["square 0", "square 1", "square 2", "square 3"]  # and what follows is given the same


def test_another_environment_is_another_result(tmp_path: Path) -> None:
    run(built(fan), tmp_path, environment={"numpy": "1"})
    CALLS.clear()
    run(built(fan), tmp_path, environment={"numpy": "2"})
    assert len(CALLS) == 7


def test_a_failed_task_skips_its_descendants_only_and_says_why(tmp_path: Path) -> None:
    workflow = Workflow("w")
    bad = workflow.add(fragile, inputs={"value": 1.0})
    child = workflow.add(square, name="child", inputs={"value": bad.output()})
    workflow.add(square, name="grandchild", inputs={"value": child.output()})
    workflow.add(square, name="other", inputs={"value": 3.0})
    result = run(workflow, tmp_path)
    assert {id: outcome.status for id, outcome in result.steps.items()} == {
        "fragile": "failed",
        "child": "skipped",
        "grandchild": "skipped",
        "other": "finished",
    }
    assert result.steps["grandchild"].reason == "fragile failed: ValueError: one is not allowed"
    assert result.status == "failed"
    with pytest.raises(LookupError, match="one is not allowed"):
        result.value("fragile")


def test_one_failure_in_a_fan_out_leaves_the_others_done(tmp_path: Path) -> None:
    workflow = Workflow("w")
    points = workflow.map(fragile, over={"value": [0.0, 1.0, 2.0]})
    workflow.add(score, inputs={"values": points.output()})
    result = run(workflow, tmp_path)
    assert result.steps["fragile"].reason == "1 of 3 failed, first fragile[1]: ValueError: one is not allowed"
    assert result.steps["score"].status == "skipped"
    CALLS.clear()
    run(workflow, tmp_path)
    assert CALLS == ["fragile 1"]


def test_a_fan_in_may_collect_what_finished(tmp_path: Path) -> None:
    workflow = Workflow("w")
    points = workflow.map(fragile, over={"value": [0.0, 1.0, 2.0]}, collect="finished")
    workflow.add(score, inputs={"values": points.output()})
    result = run(workflow, tmp_path)
    assert result.value("score", "table") == [0.0, 2.0]
    assert "one is not allowed" in result.steps["fragile"].reason


def test_a_fan_out_over_nothing_gives_an_empty_list(tmp_path: Path) -> None:
    workflow = Workflow("w")
    workflow.map(square, over={"value": workflow.add(numbers, inputs={"count": 0}).output()})
    assert run(workflow, tmp_path).value("square") == []


@pytest.mark.parametrize(("value", "status"), [(3.0, "skipped"), (30.0, "finished")])
def test_a_branch_with_a_condition_runs_only_if_it_holds(tmp_path: Path, value: float, status: str) -> None:
    workflow = Workflow("w")
    large = workflow.add(is_large, inputs={"value": value})
    workflow.add(square, inputs={"value": value}, when=large.output())
    result = run(workflow, tmp_path)
    assert (result.steps["square"].status, result.status) == (status, "finished")


def test_after_orders_steps_that_share_no_value(tmp_path: Path) -> None:
    workflow = Workflow("w")
    workflow.add(square, name="second", inputs={"value": 2.0}, after=["first"])
    workflow.add(square, name="first", inputs={"value": 1.0})
    run(workflow, tmp_path)
    assert CALLS == ["square 1", "square 2"]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_workflow_with_async_bodies_runs_inside_an_event_loop(tmp_path: Path, concurrency: int) -> None:
    assert asyncio.run(run_async(built(fan), tmp_path, concurrency=concurrency)).results == {"final": 18.0}


@task
def located(x: float) -> Point:
    return Point(x, Path("somewhere"))


def test_dataclasses_and_paths_are_restored(tmp_path: Path) -> None:
    workflow = Workflow("w")
    point = workflow.add(located, inputs={"x": float("inf")})
    workflow.add(square, inputs={"value": point.output("x")})
    for _ in range(2):
        result = run(workflow, tmp_path)
        assert result.value("located") == Point(float("inf"), Path("somewhere"))
        assert result.value("square") == float("inf")


@task
def changes(values: list[float]) -> list[float]:
    values.append(99.0)
    return values


def test_no_task_can_change_the_input_of_another(tmp_path: Path) -> None:
    workflow = Workflow("w")
    source = workflow.add(numbers, inputs={"count": 2})
    first = workflow.add(changes, inputs={"values": source.output()})
    workflow.add(score, inputs={"values": source.output()}, after=[first])
    assert run(workflow, tmp_path).value("score", "table") == [0.0, 1.0]


@task
def writes(path: Path, text: str) -> Path:
    CALLS.append("writes")
    path.write_text(text)
    return path


@task
def reads(path: Path) -> str:
    CALLS.append("reads")
    return path.read_text()


def test_a_missing_or_changed_file_is_written_again(tmp_path: Path) -> None:
    file = tmp_path / "model.bin"
    workflow = Workflow("w")
    made = workflow.add(writes, inputs={"path": tmp_path / "model.bin", "text": "weights"})
    workflow.add(reads, inputs={"path": made.output()})
    store = tmp_path / "store"
    run(workflow, store)
    CALLS.clear()
    file.write_text("edited by hand")
    assert run(workflow, store).value("reads") == "weights"
    assert CALLS == ["writes"]


def test_a_large_value_has_its_own_file(tmp_path: Path) -> None:
    workflow = Workflow("w")
    values = workflow.add(numbers, inputs={"count": 50_000})
    workflow.add(score, inputs={"values": values.output()})
    run(workflow, tmp_path)
    assert (tmp_path / "log.jsonl").stat().st_size < 10_000
    CALLS.clear()
    assert run(workflow, tmp_path).value("score", "best") == 49_999.0 and CALLS == []
    for file in (tmp_path / "values").iterdir():
        file.unlink()
    assert run(workflow, tmp_path).value("score", "best") == 49_999.0
    assert CALLS == ["numbers", "score"]


def test_a_suspended_body_is_tried_again(tmp_path: Path) -> None:
    answers: list[float] = []

    @task
    def review(value: float) -> float:
        if not answers:
            raise Suspended("waits for a person")
        return answers[0] + value

    workflow = Workflow("w")
    asked = workflow.add(review, inputs={"value": 1.0})
    workflow.add(square, inputs={"value": asked.output()})
    result = run(workflow, tmp_path)
    assert (result.status, result.steps["square"].status) == ("suspended", "waiting")
    assert result.steps["square"].reason == "review suspended: waits for a person"
    answers.append(2.0)
    assert run(workflow, tmp_path, environment={}).value("square") == 9.0


def test_a_forgotten_step_runs_again_and_its_users_only_if_it_differs(tmp_path: Path) -> None:
    run(built(fan), tmp_path)
    CALLS.clear()
    Store(tmp_path).forget("numbers")
    run(built(fan), tmp_path)
    assert CALLS == ["numbers"]


EXPERIMENT = Experiment("train", "train --lr {lr}", Metric("acc", "maximize"), {"lr": [0.1, 0.2]}, produces=["acc"])


@task
def best_lr(runs: list[dict[str, Any]]) -> float:
    return float(max(runs, key=lambda made: made["metrics"]["acc"])["params"]["lr"])


def test_an_experiment_is_executed_by_run_experiment(tmp_path: Path) -> None:
    workflow = Workflow("w")
    train = workflow.add(EXPERIMENT)
    workflow.add(best_lr, inputs={"runs": train.output("runs")})

    def execute(step: Any, inputs: dict[str, Any]) -> Any:
        CALLS.append(step.id)
        runs = [
            {
                "run_id": f"r{index}",
                "params": dict(made.params),
                "seed": made.seed,
                "status": "finished",
                "metrics": {"acc": index},
            }
            for index, made in enumerate(step.work.configurations())
        ]
        return {"runs": runs, "metric": "acc", "direction": "maximize"}

    assert "pass run_experiment" in run(workflow, tmp_path).steps["train"].reason
    for _ in range(2):
        assert run(workflow, tmp_path, run_experiment=execute).value("best_lr") == 0.2
    assert CALLS == ["train"]


def test_a_workflow_that_cannot_run_is_refused_before_anything_runs(tmp_path: Path) -> None:
    workflow = Workflow("w")
    workflow.add(square, inputs={"value": Output("nowhere")})
    with pytest.raises(InvalidWorkflow, match="there is no step 'nowhere'"):
        run(workflow, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_two_runs_never_share_a_store(tmp_path: Path) -> None:
    with Store(tmp_path), pytest.raises(StoreInUse):
        run(built(fan), tmp_path)


def test_a_child_forked_by_another_thread_does_not_hold_the_lock(tmp_path: Path) -> None:
    """Until it execs, it has every file that was open then."""
    with Store(tmp_path) as store:
        assert store._fd is not None
        inherited = os.dup(store._fd)
    try:
        assert run(built(fan), tmp_path).status == "finished"
    finally:
        os.close(inherited)


def test_the_log_holds_every_fact(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    run(built(fan), tmp_path, on_event=heard.append)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines == heard
    before = (tmp_path / "log.jsonl").read_bytes()
    run(built(fan), tmp_path)
    assert (tmp_path / "log.jsonl").read_bytes().startswith(before)


def test_a_callback_that_raises_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    def refuse(fact: dict[str, Any]) -> None:
        if fact["fact"] == "finished":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(built(fan), tmp_path, on_event=refuse)
    CALLS.clear()
    assert run(built(fan), tmp_path).results == {"final": 18.0} and "numbers" not in CALLS


def test_the_policy_on_fsync_is_one_of_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    counts = {}
    for sync in ("each", "end", "never"):
        calls: list[int] = []
        monkeypatch.setattr(os, "fsync", calls.append)
        run(built(fan), Store(tmp_path / sync, sync=sync))
        counts[sync] = len(calls)
    assert counts["each"] > 10 and counts["end"] == 1 and counts["never"] == 0
    with pytest.raises(ValueError, match="sync"):
        Store(tmp_path, sync="sometimes")
