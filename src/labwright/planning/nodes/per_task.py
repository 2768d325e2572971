"""One text of a model for each task of the IR, several asked for at once. Declared runs follow from the IR alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from labwright.planning.ir.model import PlanIR, read_ir
from labwright.planning.nodes.planning import Planning, hash_of
from labwright.planning.record.state import change_state

_AT_ONCE = 4
BODY, TEST = "src/experiment/tasks/{}.py", "tests/test_{}.py"


def generate(planning: Planning, node: str, path: str, declared: Callable[[PlanIR, str], str]) -> str:
    """Results stand in the order of the IR, whoever answered first. `declared` writes what is the experiment's."""
    ir = read_ir(planning.handle)
    change_state(planning.handle, repairs=())
    experiment = ir.workflow.grid.task
    tasks = [step.id for step in ir.workflow.steps if step.id != experiment]
    texts = {experiment: declared(ir, experiment), **_answers(planning, node, ir, tasks)}
    return hash_of(*planning.keep_generated({path.format(task): texts[task] for task in [experiment, *tasks]}))


def _answers(planning: Planning, node: str, ir: PlanIR, tasks: list[str]) -> dict[str, str]:
    """What an answer cost is noted when it comes, also if another task's question fails."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="generate") as pool:
        asked = {pool.submit(planning.answer, node, str, ir=ir, task_id=task): task for task in tasks}
        texts: dict[str, str] = {}
        for future in as_completed(asked):
            if future.exception() is None:
                texts[asked[future]] = planning.note(node, future.result())
    for future in asked:
        future.result()  # the first failure, in the order of the tasks
    return texts
