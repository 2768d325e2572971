"""The bodies of tasks: tried again, late, asynchronous, in classes, and no more of them at once than allowed."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from labwright.workflow import Retry, Workflow, run, task

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


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


def test_a_sync_body_that_cannot_be_ended_is_not_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labwright.workflow.jobs._GRACE_SECONDS", 0.05)
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
    assert "not the declared float: expected float, got str" in steps["lies"].reason
    assert "write a file and return its Path" in steps["opaque"].reason


def test_sys_exit_in_a_body_is_a_failure(tmp_path: Path) -> None:
    @task
    def leaves(x: float) -> float:
        raise SystemExit(int(x))

    workflow = Workflow("w")
    workflow.add(leaves, inputs={"x": 0.0})
    for concurrency in (1, 2):
        assert run(workflow, tmp_path, concurrency=concurrency).steps["leaves"].reason == "SystemExit: 0"
