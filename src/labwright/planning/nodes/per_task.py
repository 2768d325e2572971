"""One text of a model for each task of the IR."""

from __future__ import annotations

from labwright.planning.ir import read_ir
from labwright.planning.nodes.planning import Planning, hash_of


def generate(planning: Planning, node: str, path: str) -> str:
    ir = read_ir(planning.handle)
    texts = {step.id: planning.ask(node, str, ir=ir, task_id=step.id) for step in ir.workflow.steps}
    return hash_of(*(planning.keep(path.format(task), text) for task, text in texts.items()))
