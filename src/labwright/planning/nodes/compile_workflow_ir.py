"""CompileWorkflowIR: the tasks, what they exchange, and the grid."""

from __future__ import annotations

from labwright.planning.ir.compile import workflow_of
from labwright.planning.ir.model import write_workflow
from labwright.planning.nodes.planning import Planning, hash_of


def compile_workflow_ir(planning: Planning) -> str:
    workflow = workflow_of(planning.draft(), planning.scan.environment)
    write_workflow(planning.handle, workflow)
    return hash_of(workflow.model_dump_json())
