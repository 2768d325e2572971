"""The plan document and the IR say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from labwright.domain.plan_document.reader import read
from labwright.planning.checks.subject import Found, Subject
from labwright.planning.ir.values import read_value, write_value
from labwright.planning.scan.facts import Role, role_of

_HINT = "Change the plan and compile it again, so that both say the same."


def check_plan_document(subject: Subject) -> Iterator[Found]:
    document = read((subject.folder / "plan/implementation_plan.md").read_text("utf-8", "replace"))
    for fault in document.faults:
        place = f"plan/implementation_plan.md:{fault.line}"
        yield Found(code="plan_format", place=place, message=fault.message, hint=fault.hint)
    grid, sections = subject.ir.workflow.grid, document.sections
    seeds = tuple(write_value(seed) for seed in grid.seeds)
    kinds = {p.flag: type(p.values[0]).__name__ for p in grid.parameters}
    planned = {
        row.name: _as_we_write(row.values, kinds.get(row.name, "str"))
        for row in sections.parameters
        if not (role_of(row.name) is Role.SEED and row.values == seeds)  # people count them among the parameters
    }
    compiled = {p.flag: tuple(write_value(value) for value in p.values) for p in grid.parameters}
    if planned != compiled:
        words = f"The plan sweeps {planned}, the IR {compiled}."
        yield Found(code="plan_ir_mismatch", place="Parameters to Sweep", message=words, hint=_HINT)
    primary = sections.metrics.primary
    if primary is None or primary.name != grid.metric.name:
        words = f"The IR decides by {grid.metric.name}, the plan by {primary.name if primary else 'nothing'}."
        yield Found(code="plan_ir_mismatch", place="Metrics", message=words, hint=_HINT)
    runs = re.match(r"\d+", sections.estimated_effort.runs)
    if runs is None or int(runs[0]) != grid.size:
        words = f"The plan counts {sections.estimated_effort.runs!r} runs, the grid makes {grid.size}."
        yield Found(code="plan_ir_mismatch", place="Estimated Effort", message=words, hint=_HINT)


def _as_we_write(values: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """People write 1e-4 and true, which are the same values as 0.0001 and on."""
    return tuple(write_value(read_value(value, kind)) for value in values)
