"""GenerateTaskTests: a file of tests for each task."""

from __future__ import annotations

from labwright.planning.ir import templates
from labwright.planning.nodes.per_task import TEST, generate
from labwright.planning.nodes.planning import Planning


def generate_task_tests(planning: Planning) -> str:
    return generate(planning, "GenerateTaskTests", TEST, templates.task_test)
