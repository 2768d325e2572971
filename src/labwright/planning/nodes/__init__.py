"""The eleven nodes. Each reads from the workspace, writes into it, and returns a hash of what it wrote."""

from __future__ import annotations

from labwright.planning.nodes.compile_task_ir import compile_task_ir
from labwright.planning.nodes.compile_workflow_ir import compile_workflow_ir
from labwright.planning.nodes.draft_implementation_plan import draft_implementation_plan
from labwright.planning.nodes.draft_report_digest import draft_report_digest
from labwright.planning.nodes.final_handoff_check import final_handoff_check
from labwright.planning.nodes.generate_task_implementations import generate_task_implementations
from labwright.planning.nodes.generate_task_tests import generate_task_tests
from labwright.planning.nodes.generate_workflow_skeleton import generate_workflow_skeleton
from labwright.planning.nodes.human_review import human_review
from labwright.planning.nodes.ingest_report import ingest_report
from labwright.planning.nodes.planning import ModelPolicy, Node, Planning
from labwright.planning.nodes.validate_workspace import validate_workspace

__all__ = ["NODES", "REDONE_BY", "ModelPolicy", "Node", "Planning"]

NODES: dict[str, Node] = {
    "IngestReport": ingest_report,
    "DraftReportDigest": draft_report_digest,
    "DraftImplementationPlan": draft_implementation_plan,
    "CompileWorkflowIR": compile_workflow_ir,
    "CompileTaskIR": compile_task_ir,
    "GenerateWorkflowSkeleton": generate_workflow_skeleton,
    "GenerateTaskTests": generate_task_tests,
    "GenerateTaskImplementations": generate_task_implementations,
    "ValidateWorkspace": validate_workspace,
    "HumanReview": human_review,
    "FinalHandoffCheck": final_handoff_check,
}
# Who can do better when a review says no. The other two only look at what these made.
REDONE_BY = tuple(name for name in NODES if name not in ("HumanReview", "FinalHandoffCheck"))
