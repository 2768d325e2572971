"""Mending what a model wrote, within bounds: it says whose fault it is, and may then change that and nothing else.

The checks, the IR, the plan and what a person edited stay as they are.
"""

from __future__ import annotations

import re

from labwright.llm import NoRule
from labwright.planning.checks.subject import Found
from labwright.planning.ir.drafts import Repair
from labwright.planning.ir.model import BadIR, PlanIR, read_ir
from labwright.planning.nodes.per_task import BODY, TEST
from labwright.planning.nodes.planning import Planning, hash_of
from labwright.planning.record.state import RepairDone, change_state, read_state

MOST_ROUNDS = 3
NODE = "ValidateWorkspace"  # who asks
_PLACE = re.compile(r"(?:src/experiment/tasks/|tests/test_)(\w+)\.py")


def repair(planning: Planning, found: list[Found]) -> bool:
    """One round over the tasks that something was found in; whether anything was changed."""
    done = read_state(planning.handle).repairs
    number = max((one.round for one in done), default=0) + 1
    if number > MOST_ROUNDS:
        return False
    try:
        ir = read_ir(planning.handle)
    except BadIR:
        return False
    changed = [_repair_task(planning, ir, task, findings, number) for task, findings in _by_task(ir, found).items()]
    return any(changed)


def _by_task(ir: PlanIR, found: list[Found]) -> dict[str, list[Found]]:
    """Of tasks that a model wrote; what is found elsewhere is not a model's to mend."""
    ids = {step.id for step in ir.workflow.steps} - {ir.workflow.grid.task}
    by_task: dict[str, list[Found]] = {}
    for finding in found:
        named = _PLACE.match(finding.place)
        if named and named[1] in ids:
            by_task.setdefault(named[1], []).append(finding)
    return by_task


def _repair_task(planning: Planning, ir: PlanIR, task: str, findings: list[Found], number: int) -> bool:
    texts = {name: _as_generated(planning, path.format(task)) for name, path in (("body", BODY), ("test", TEST))}
    if None in texts.values():
        return False  # a person edited it, or took it away: theirs to mend
    told = [finding.to_dict() for finding in findings]
    try:
        answer = planning.ask(NODE, Repair, ir=ir, task_id=task, findings=told, **texts)
    except NoRule:
        return False
    changed = _apply(planning, task, answer)
    codes = tuple(dict.fromkeys(finding.code for finding in findings))
    made = RepairDone(round=number, task=task, findings=codes, diagnosis=answer.diagnosis, changed=changed)
    change_state(planning.handle, repairs=(*read_state(planning.handle).repairs, made))
    return bool(changed)


def _as_generated(planning: Planning, path: str) -> str | None:
    try:
        text = planning.handle.read(path).decode(errors="replace")
    except FileNotFoundError:
        return None
    state = read_state(planning.handle)
    return text if hash_of(text) in (state.generated.get(path), state.replaced.get(path)) else None


def _apply(planning: Planning, task: str, answer: Repair) -> tuple[str, ...]:
    """Only what the diagnosis names."""
    offered = {"body": (BODY.format(task), answer.body), "test": (TEST.format(task), answer.test)}
    meant = offered if answer.fault == "both" else {answer.fault: offered[answer.fault]}
    changes = {path: text for path, text in meant.values() if text.strip()}
    for path, text in changes.items():
        planning.keep_generated({path: text})
    return tuple(changes)
