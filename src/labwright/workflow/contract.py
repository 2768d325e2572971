"""`validate_contract`: every fault of a workflow at once, by rules alone. No task body runs."""

from __future__ import annotations

from typing import Any

from labwright.workflow.graph import Workflow
from labwright.workflow.plausibility import check_plausibility
from labwright.workflow.reports import Finding, Report
from labwright.workflow.structure import check_structure


def validate_contract(workflow: Any) -> Report:
    """What must hold before anybody approves or runs this."""
    if not isinstance(workflow, Workflow):
        message = f"{type(workflow).__name__} is no Workflow"
        return Report((Finding("not_a_workflow", "create_workflow", message, "Return the Workflow."),))
    findings: list[Finding] = []
    for check in (check_structure, check_plausibility):
        try:
            findings += check(workflow)
        except Exception as error:  # noqa: BLE001 - hostile `__eq__`, `__len__` …: the workflow's fault, and a finding
            message = f"the workflow cannot be checked: {type(error).__name__}: {error}"
            findings.append(Finding("unreadable", f"workflow {workflow.name!r}", message, "Use plain values in it."))
    return Report(tuple(findings))
