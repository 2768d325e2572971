"""CompileTaskIR: what each task is to do, and how one sees that it was done."""

from __future__ import annotations

from labwright.domain.errors import Conflict
from labwright.planning.ir.compile import tasks_of
from labwright.planning.ir.model import write_task
from labwright.planning.nodes.planning import Planning, hash_of


def compile_task_ir(planning: Planning) -> str:
    draft = planning.draft()
    entry = planning.scan.entry_point(draft.script)
    if entry is None:
        raise Conflict(f"{draft.script} is not in the project any more.", hint="Plan again.")
    tasks = tasks_of(draft, entry, planning.scan.environment)
    for task in tasks:
        write_task(planning.handle, task)
    return hash_of(*(task.model_dump_json() for task in tasks))
