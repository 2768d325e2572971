"""GenerateWorkflowSkeleton: all that follows from the IR alone, by template and without a model."""

from __future__ import annotations

from labwright.planning.ir import templates
from labwright.planning.ir.model import read_ir
from labwright.planning.nodes.planning import Planning, hash_of


def generate_workflow_skeleton(planning: Planning) -> str:
    files = templates.skeleton(read_ir(planning.handle))
    return hash_of(*(planning.keep(path, text) for path, text in files.items()))
