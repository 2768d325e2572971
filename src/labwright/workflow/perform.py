"""`python -m labwright.workflow.perform SOURCE_ROOT MODULE SYMBOL STEP INPUTS OUTPUT`: one task, in its own process.

INPUTS is a file with the encoded inputs by name. OUTPUT is written whole or not at all: `{"status": "finished",
"value": …}`, or `failed` or `suspended` with the reason. So a run on the server can be a task, and a supervisor, a time
limit and a log come with it. The exit code is 0 if it finished, 1 if it failed, 75 if it waits for something.
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

_EXIT_CODES = {"finished": 0, "failed": 1, "suspended": 75}  # 75: try again later, as sendmail has it


def perform(workflow: Workflow, step_id: str, encoded_inputs: dict[str, Any]) -> dict[str, Any]:
    """Retries and time-out as the task has them; the result checked against its annotation."""
    step = next((step for step in workflow.steps if step.id == step_id), None)
    if step is None or not isinstance(step.work, Task):
        return {"status": "failed", "error": f"there is no task {step_id!r} in {workflow.name}"}
    task, bodies = step.work, Bodies()

    def call() -> Any:
        return checked(task.returns, bodies.call(task, {name: decode(value) for name, value in encoded_inputs.items()}))

    heard: list[AttemptResult] = []
    do(Job(step.id, step.id, 0, "", call, task.options.retry), heard.append)
    bodies.close()
    return _answer(heard[-1])


def _answer(news: AttemptResult) -> dict[str, Any]:
    about = {"status": news.status, "attempts": news.attempt, "seconds": round(news.seconds, 6)}
    if news.status == "finished":
        return {**about, "value": news.value}
    return {**about, "error": news.error, "traceback": news.traceback}


def main() -> int:
    if len(sys.argv) != 7:
        print(
            "usage: python -m labwright.workflow.perform SOURCE_ROOT MODULE SYMBOL STEP INPUTS OUTPUT", file=sys.stderr
        )
        return 2
    root, module, symbol, step, inputs, output = sys.argv[1:]
    try:
        with open(inputs, encoding="utf-8") as file:
            answer = perform(load_entrypoint(root, module, symbol), step, json.load(file))
    except LoadFault as fault:
        answer = {"status": "failed", "error": fault.message, "traceback": fault.trace}
    if answer["status"] != "finished":
        print(answer.get("traceback") or answer["error"], file=sys.stderr)
    write_whole(output, json.dumps(answer))
    return _EXIT_CODES[answer["status"]]


if __name__ == "__main__":
    sys.exit(main())
