"""`python -m labwright.workflow.perform SOURCE_ROOT MODULE SYMBOL STEP INPUTS OUTPUT`: do one task in its own process.

INPUTS is a file with the encoded inputs by name. OUTPUT is written completely or not at all: `{"status": "finished",
"value": …}`, or `failed` or `suspended` with the reason. So a task can be a run on the server, with a supervisor, a
time limit and a log. The exit code is 0 if it finished, 1 if it failed, 75 if it is suspended.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from labwright.workflow.graph import Workflow
from labwright.workflow.jobs import AttemptResult, Bodies, Job, checked, do
from labwright.workflow.load import LoadFault, load_entrypoint
from labwright.workflow.store import write_whole
from labwright.workflow.tasks import Task
from labwright.workflow.values import decode

_EXIT_CODES = {"finished": 0, "failed": 1, "suspended": 75}  # 75: try again later, as in sysexits.h


def perform(workflow: Workflow, step_id: str, encoded_inputs: dict[str, Any]) -> dict[str, Any]:
    """Do one task with its retries and timeout, and check the result against its annotation."""
    step = next((step for step in workflow.steps if step.id == step_id), None)
    if step is None or not isinstance(step.work, Task):
        return {"status": "failed", "error": f"there is no task {step_id!r} in {workflow.name}"}
    task, bodies = step.work, Bodies()

    def call() -> Any:
        return checked(task.returns, bodies.call(task, {name: decode(value) for name, value in encoded_inputs.items()}))

    results: list[AttemptResult] = []
    do(Job(step.id, step.id, 0, "", call, task.options.retry), results.append)
    bodies.close()
    last = results[-1]
    facts = {"status": last.status, "attempts": last.attempt, "seconds": round(last.seconds, 6)}
    if last.status == "finished":
        return {**facts, "value": last.value}
    return {**facts, "error": last.error, "traceback": last.traceback}


def main() -> int:
    if len(sys.argv) != 7:
        print(
            "usage: python -m labwright.workflow.perform SOURCE_ROOT MODULE SYMBOL STEP INPUTS OUTPUT", file=sys.stderr
        )
        return 2
    root, module, symbol, step, inputs, output = sys.argv[1:]
    try:
        with open(inputs, encoding="utf-8") as file:
            result = perform(load_entrypoint(root, module, symbol), step, json.load(file))
    except LoadFault as fault:
        result = {"status": "failed", "error": fault.message, "traceback": fault.trace}
    if result["status"] != "finished":
        print(result.get("traceback") or result["error"], file=sys.stderr)
    write_whole(output, json.dumps(result))
    return _EXIT_CODES[result["status"]]


if __name__ == "__main__":
    sys.exit(main())
