"""No task is a stub: an empty body, `NotImplementedError`, or the same constant whatever comes in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.subject import TASKS, Found, Subject
from labwright.workflow.stubs import why_stub_text


def check_stubs(subject: Subject) -> Iterator[Found]:
    for step in subject.ir.workflow.steps:
        module = subject.modules.get(f"{TASKS}/{step.id}.py")
        for node in module.tree.body if module else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == step.id:
                reason = why_stub_text(node)
                if module and reason:
                    words = f"{step.id} is a stub: {reason}."
                    yield Found(code="stub", place=module.at(node), message=words, hint="Write the body.")
