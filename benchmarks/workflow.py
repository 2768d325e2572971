"""The workflow engine: what tracking a task costs, that it stays linear, and how long the import takes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

from benchmarks.figure import Figure, at_most, median_of
from labwright.workflow import Workflow, run, task, validate_contract

_ROUNDS = 5
_SHORT = 200
_LONG = 2_000
_IMPORT = """
import time
began = time.perf_counter(), time.process_time()
import labwright.workflow
print(time.perf_counter() - began[0], time.process_time() - began[1])
"""


@task
def increased(number: int) -> int:
    return number + 1


def measure() -> list[Figure]:
    _per_task(_SHORT)
    short = [_per_task(_SHORT) for _ in range(_ROUNDS)]
    long = [_per_task(_LONG) for _ in range(_ROUNDS)]
    imports = [_milliseconds_of_import() for _ in range(_ROUNDS * 2)]
    how = "a chain from its check to its last line in the log; each task's value is stored"
    growth = [many[0] / few[0] for few, many in zip(short, long, strict=True)]
    return [
        median_of(f"workflow of {_SHORT} tasks, a task", "ms", [fresh for fresh, _ in short], how, at_most(1)),
        median_of(f"workflow of {_LONG:,} tasks, a task", "ms", [fresh for fresh, _ in long], how, at_most(1)),
        median_of("the same, a task of 2,000 over one of 200", "×", growth, "1 is linear", at_most(1.5)),
        median_of("resumed when all is done, a task", "ms", [again for _, again in long], f"{_LONG:,} tasks", None),
        median_of("validate_contract, a step", "ms", [_validated() for _ in range(_ROUNDS)], f"{_LONG:,} steps", None),
        median_of("import labwright.workflow", "ms", [wall for wall, _ in imports], "a new process each", at_most(150)),
        median_of("the same, processor time", "ms", [cpu for _, cpu in imports], "hardly depends on other load", None),
    ]


def _chain(length: int) -> Workflow:
    workflow = Workflow("chain")
    step = workflow.add(increased, name="t0", inputs={"number": 0})
    for index in range(1, length):
        step = workflow.add(increased, name=f"t{index}", inputs={"number": step.output()})
    workflow.result("last", step.output())
    return workflow


def _per_task(length: int) -> tuple[float, float]:
    """Milliseconds a task: at first, and when everything is done already."""
    workflow = _chain(length)
    with tempfile.TemporaryDirectory() as folder:
        return _run(workflow, folder, length), _run(workflow, folder, length)


def _run(workflow: Workflow, folder: str, length: int) -> float:
    began = time.perf_counter()
    result = run(workflow, folder)
    seconds = time.perf_counter() - began
    assert result.results == {"last": length}
    return seconds * 1e3 / length


def _validated() -> float:
    workflow = _chain(_LONG)
    began = time.perf_counter()
    assert validate_contract(workflow).ok
    return (time.perf_counter() - began) * 1e3 / _LONG


def _milliseconds_of_import() -> tuple[float, float]:
    done = subprocess.run([sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True)
    wall, processor = map(float, done.stdout.split())
    return wall * 1e3, processor * 1e3
