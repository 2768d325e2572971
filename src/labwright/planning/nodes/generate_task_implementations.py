"""GenerateTaskImplementations: a module for each task."""

from __future__ import annotations

from labwright.planning.ir import templates
from labwright.planning.nodes.per_task import BODY, generate
from labwright.planning.nodes.planning import Planning


def generate_task_implementations(planning: Planning) -> str:
    return generate(planning, "GenerateTaskImplementations", BODY, templates.task_module)
