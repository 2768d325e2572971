"""The workflow that the IR means keeps its contract: edges, types, circles, orphans, artifacts, grid and budget.

It is built here from data, so this finding is ours, whatever the generated code says of itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject
from labwright.planning.ir.model import WORKFLOW_FILE
from labwright.planning.ir.workflow import workflow_from
from labwright.workflow import Experiment, validate_contract


def check_ir_contract(subject: Subject) -> Iterator[Found]:
    workflow = subject.ir.workflow
    meant = workflow_from(subject.ir, subject.types)
    for finding in validate_contract(meant).findings:
        place = f"{WORKFLOW_FILE}: {finding.place}"
        words = f"{finding.place}: {finding.message}."
        yield Found(code=finding.code, place=place, message=words, hint=finding.hint)
    for step, made in zip(workflow.steps, meant.steps, strict=True):
        if isinstance(made.work, Experiment):
            for name, text in step.outputs.items():
                given = made.work.outputs.get(name)
                if given != subject.types.of(text):
                    words = f"{step.id} gives {name} as {given or 'nothing'}, not as {text}."
                    yield Found(code="type_mismatch", place=f"{WORKFLOW_FILE}: {step.id}", message=words)
