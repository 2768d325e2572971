"""kill -9 at any line, and a log torn at any byte: finished work is never repeated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labwright.workflow import Store, Workflow, run, task
from tests.support.children import end_with_test

SCRIPT = """
import os, signal, sys, time
from labwright.workflow import Workflow, run, task

store, kill_at, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])

def note(name):
    with open(store + ".ran", "a") as file:
        file.write(name + "\\n")

@task
def numbers(count: int) -> "list[int]":
    note("numbers")
    return list(range(count))

@task
def square(value: int) -> int:
    note(f"square[{value}]")
    time.sleep(pause)
    return value * value

@task
def total(values: "list[int]") -> int:
    note("total")
    return sum(values)

workflow = Workflow("w")
values = workflow.add(numbers, inputs={"count": 4})
squares = workflow.map(square, over={"value": values.output()})
workflow.result("total", workflow.add(total, inputs={"values": squares.output()}).output())

seen = 0
def die(fact):
    global seen
    if seen == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    seen += 1

print(run(workflow, store, on_event=die, concurrency=2).results["total"])
"""


def start(store: Path, kill_at: int, pause: float = 0.0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, str(store), str(kill_at), str(pause)]
    return end_with_test(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))


def ran(store: Path) -> Counter[str]:
    file = Path(f"{store}.ran")
    return Counter(file.read_text().split() if file.exists() else [])


def finished(store: Path) -> set[str]:
    return {fact["task"] for fact in Store(store).facts() if fact["fact"] == "finished"}


def test_killed_at_every_line_it_resumes_without_repeating_finished_work(tmp_path: Path) -> None:
    for line in range(14):
        store = tmp_path / f"store{line}"
        first = start(store, line)
        first.communicate(timeout=60)
        assert first.returncode == -signal.SIGKILL, line
        done, before = finished(store), ran(store)
        out, _ = start(store, -1).communicate(timeout=60)
        assert out == "14\n"
        assert all(ran(store)[name] == before[name] for name in done), (line, done)
        assert len(ran(store)) == 6
    assert len(done) == 6  # the last kill came when everything had finished


def test_killed_repeatedly_it_still_finishes(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for kills in range(40):
        before, done = ran(store), finished(store)
        process = start(store, -1, pause=0.05)
        try:
            out, _ = process.communicate(timeout=0.2 * 1.15**kills)  # longer each time, as the machine may be busy
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
        assert all(ran(store)[name] == before[name] for name in done)
        if process.returncode == 0:
            assert out == "14\n"
            return
        time.sleep(0.01)
    pytest.fail("never finished")


CALLS: list[float] = []


@task
def halved(value: float) -> float:
    CALLS.append(value)
    return value / 2


def chain(length: int) -> Workflow:
    workflow = Workflow("chain")
    step = workflow.add(halved, name="t0", inputs={"value": 1024.0})
    for index in range(1, length):
        step = workflow.add(halved, name=f"t{index}", inputs={"value": step.output()})
    workflow.result("last", step.output())
    return workflow


@pytest.fixture(scope="module")
def whole_log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    CALLS.clear()
    run(chain(5), folder)
    return (folder / "log.jsonl").read_bytes()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_log_cut_at_any_byte_is_read_up_to_the_cut(
    whole_log: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    torn = whole_log[: data.draw(st.integers(0, len(whole_log)))]
    folder = tmp_path_factory.mktemp("torn")
    (folder / "log.jsonl").write_bytes(torn)
    whole = [json.loads(line) for line in torn.split(b"\n")[:-1]]
    done = sum(fact["fact"] == "finished" for fact in whole)
    CALLS.clear()
    assert run(chain(5), folder).results == {"last": 32.0}
    assert len(CALLS) in (5 - done, 4 - done)  # a line that lacks only its end is whole
    CALLS.clear()
    assert run(chain(5), folder).results == {"last": 32.0} and CALLS == []
