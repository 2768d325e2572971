"""Running a workflow: order, fan-out, failures that stay in their branch, retries, time-outs, nothing done twice."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest

from labwright.workflow import (
    Experiment,
    InvalidWorkflow,
    Metric,
    Output,
    Retry,
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
def test_values_travel_by_name_through_fan_out_and_fan_in(tmp_path: Path, concurrency: int) -> None:
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


def test_only_what_an_input_change_reaches_runs_again(tmp_path: Path) -> None:
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


def test_retry_tries_again_with_growing_pauses(tmp_path: Path) -> None:
    times: list[float] = []

    @task(retry=Retry(3, delay=0.02, backoff=3))
    def third_time() -> int:
        times.append(time.monotonic())
        if len(times) < 3:
            raise OSError("not yet")
        return len(times)

    workflow = Workflow("w")
    workflow.add(third_time)
    facts: list[dict[str, Any]] = []
    assert run(workflow, tmp_path, on_event=facts.append).value("third_time") == 3
    assert times[1] - times[0] >= 0.02 and times[2] - times[1] >= 0.06
    assert [fact["fact"] for fact in facts] == [
        "run_started",
        "started",
        "retrying",
        "retrying",
        "finished",
        "run_ended",
    ]


def test_a_sync_body_that_is_late_is_ended_between_two_bytecodes(tmp_path: Path) -> None:
    counted = [0]
    ended = threading.Event()

    @task(timeout=0.1)
    def spins() -> int:
        try:
            while True:
                counted[0] += 1
        finally:
            ended.set()

    workflow = Workflow("w")
    workflow.add(spins)
    assert run(workflow, tmp_path).steps["spins"].reason == "timed out: not done within 0.1 s"
    assert ended.wait(60)


def test_a_sync_body_that_cannot_be_ended_is_left_behind_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labwright.workflow.attempts._GRACE_SECONDS", 0.05)
    release = threading.Lock()
    release.acquire()

    @task(timeout=0.05, retry=Retry(5))
    def blocks() -> int:
        CALLS.append("blocks")
        release.acquire(timeout=10)
        return len(CALLS)

    workflow = Workflow("w")
    workflow.add(blocks)
    result = run(workflow, tmp_path)
    release.release()
    assert "could not be ended" in result.steps["blocks"].reason and CALLS == ["blocks"]


def test_an_async_body_that_is_late_is_cancelled(tmp_path: Path) -> None:
    cancelled = threading.Event()

    @task(timeout=0.05)
    async def sleeps() -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return len(CALLS)

    workflow = Workflow("w")
    workflow.add(sleeps)
    assert run(workflow, tmp_path).steps["sleeps"].reason.startswith("timed out")
    assert cancelled.wait(60)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_workflow_with_async_bodies_runs_inside_an_event_loop(tmp_path: Path, concurrency: int) -> None:
    assert asyncio.run(run_async(built(fan), tmp_path, concurrency=concurrency)).results == {"final": 18.0}


def test_async_bodies_of_a_run_share_one_loop(tmp_path: Path) -> None:
    loops = []

    @task
    async def which(number: int) -> int:
        loops.append(asyncio.get_running_loop())
        return number

    workflow = Workflow("w")
    workflow.map(which, over={"number": [1, 2, 3]})
    run(workflow, tmp_path)
    assert len(loops) == 3 and len(set(loops)) == 1


def test_no_more_bodies_at_once_than_allowed(tmp_path: Path) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    @task
    def busy(number: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.01)
        with lock:
            now[0] -= 1
        return number

    workflow = Workflow("w")
    workflow.map(busy, over={"number": list(range(12))})
    run(workflow, tmp_path, concurrency=3)
    assert most[0] == 3


def test_a_class_with_settings_is_a_task_and_its_settings_count(tmp_path: Path) -> None:
    def times(factor: float) -> float:
        workflow = Workflow("w")
        workflow.add(Times(factor), inputs={"value": 3.0})
        value: float = run(workflow, tmp_path).value("Times")
        return value

    assert (times(2.0), times(5.0)) == (6.0, 15.0)
    CALLS.clear()
    assert times(2.0) == 6.0 and CALLS == []


@task
class Times:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def run(self, value: float) -> float:
        CALLS.append("times")
        return value * self.factor


@task
def located(x: float) -> Point:
    return Point(x, Path("somewhere"))


def test_dataclasses_and_paths_come_out_as_they_went_in(tmp_path: Path) -> None:
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


def test_no_task_can_change_what_another_one_is_given(tmp_path: Path) -> None:
    workflow = Workflow("w")
    source = workflow.add(numbers, inputs={"count": 2})
    first = workflow.add(changes, inputs={"values": source.output()})
    workflow.add(score, inputs={"values": source.output()}, after=[first])
    assert run(workflow, tmp_path).value("score", "table") == [0.0, 1.0]


def test_a_result_of_another_type_than_declared_is_a_failure(tmp_path: Path) -> None:
    @task
    def lies(x: float) -> float:
        return str(x)  # type: ignore[return-value]

    @task
    def opaque(x: float) -> Any:
        return (x for _ in range(3))

    workflow = Workflow("w")
    workflow.add(lies, inputs={"x": 1.0})
    workflow.add(opaque, inputs={"x": 1.0})
    steps = run(workflow, tmp_path).steps
    assert "not the declared float: str is no float" in steps["lies"].reason
    assert "write a file and return its Path" in steps["opaque"].reason


def test_sys_exit_in_a_body_is_a_failure_and_no_end(tmp_path: Path) -> None:
    @task
    def leaves(x: float) -> float:
        raise SystemExit(int(x))

    workflow = Workflow("w")
    workflow.add(leaves, inputs={"x": 0.0})
    for concurrency in (1, 2):
        assert run(workflow, tmp_path, concurrency=concurrency).steps["leaves"].reason == "SystemExit: 0"


@task
def writes(path: Path, text: str) -> Path:
    CALLS.append("writes")
    path.write_text(text)
    return path


@task
def reads(path: Path) -> str:
    CALLS.append("reads")
    return path.read_text()


def test_a_file_that_is_gone_or_changed_is_made_again(tmp_path: Path) -> None:
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


def test_a_large_value_is_kept_in_a_file_of_its_own(tmp_path: Path) -> None:
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


def test_a_body_may_wait_for_somebody_and_is_asked_again(tmp_path: Path) -> None:
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


def test_a_forgotten_step_runs_again_and_what_it_feeds_only_if_it_differs(tmp_path: Path) -> None:
    run(built(fan), tmp_path)
    CALLS.clear()
    Store(tmp_path).forget("numbers")
    run(built(fan), tmp_path)
    assert CALLS == ["numbers"]


EXPERIMENT = Experiment("train", "train --lr {lr}", Metric("acc", "maximize"), {"lr": [0.1, 0.2]}, produces=["acc"])


@task
def best_lr(runs: list[dict[str, Any]]) -> float:
    return float(max(runs, key=lambda made: made["metrics"]["acc"])["params"]["lr"])


def test_an_experiment_is_executed_by_whoever_runs_the_workflow(tmp_path: Path) -> None:
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

    assert "no run_experiment" in run(workflow, tmp_path).steps["train"].reason
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


def test_the_log_grows_by_lines_and_tells_the_whole_story(tmp_path: Path) -> None:
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
