"""Put the results of a plan into its folder: pictures, then the numbers, then the report that names them."""

from __future__ import annotations

import json
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.clock import now
from labwright.domain.plan_document.reader import read
from labwright.planning.record.state import PlanRunHandoff
from labwright.planning.results.comparison import compared
from labwright.planning.results.criteria import judge
from labwright.planning.results.findings import Findings, findings_of
from labwright.planning.results.pictures import pictures_of
from labwright.planning.results.report import Part, Report
from labwright.planning.runs.carriers import counted_carriers
from labwright.workflow import RunResult
from labwright.workspace import PlanWorkspaceHandle

REPORT = "results/report.md"
NUMBERS = "results/results.json"
_LARGEST_VALUE = 64 << 10  # of what a step returned; larger ones are in the folder of the execution


def write_results(lab: Lab, handle: PlanWorkspaceHandle, handoff: PlanRunHandoff, result: RunResult) -> str:
    """Also where a step failed: the report then says what, and what there is. Answers where it lies."""
    text = (handle.open_copy(handoff.digest) / "plan" / handle.paths.text.name).read_text()
    sections = read(text).sections
    carriers = counted_carriers(handle)
    parts = [_part(lab, findings) for findings in findings_of(lab, carriers, result)]
    deciding = _deciding(parts, sections.metrics.primary.name if sections.metrics.primary else "")
    report = Report(
        plan_id=handle.id,
        digest=handoff.digest,
        written_at=now(),
        sections=sections,
        parts=parts,
        judged=judge(
            sections.success_criteria,
            deciding.findings if deciding else None,
            deciding.comparison if deciding else compared(None, None, "max", "", 0),
        ),
        result=result,
        carriers=carriers,
    )
    _remove_old_pictures(handle)
    for picture in (picture for part in parts for picture in part.pictures):
        handle.write(f"results/{picture.file}", picture.svg.encode())
    handle.write(NUMBERS, (json.dumps(_numbers(report), indent=1, ensure_ascii=False) + "\n").encode())
    handle.write(REPORT, report.markdown().encode())
    return REPORT


def _part(lab: Lab, findings: Findings) -> Part:
    comparison = compared(
        findings.best, findings.baseline, findings.goal, findings.metric.name, len(findings.configurations)
    )
    return Part(findings=findings, comparison=comparison, pictures=pictures_of(lab, findings))


def _deciding(parts: list[Part], primary: str) -> Part | None:
    """The experiment that the plan's primary metric is of."""
    return next((part for part in parts if part.findings.metric.name == primary), parts[0] if parts else None)


def _remove_old_pictures(handle: PlanWorkspaceHandle) -> None:
    for path in handle.paths.results.glob("*.svg"):
        path.unlink()


def _numbers(report: Report) -> dict[str, Any]:
    return {
        "plan_id": report.plan_id,
        "digest": report.digest,
        "written_at": report.written_at,
        "completed": not report.failed_steps,
        "experiments": [_experiment(part) for part in report.parts],
        "success_criteria": [
            {"text": judged.text, "met": judged.met, "evidence": judged.evidence} for judged in report.judged
        ],
        "steps": {
            name: {"status": outcome.status, "reason": outcome.reason, "carried_out_by": report.carriers.get(name, [])}
            for name, outcome in report.result.steps.items()
        },
        "returned": _returned(report.result),
    }


def _experiment(part: Part) -> dict[str, Any]:
    findings = part.findings
    return {
        "step": findings.step,
        "sweep_ids": findings.sweep_ids,
        "metric": {"name": findings.metric.name, "direction": findings.metric.direction, "use": "last"},
        "configurations": [found.to_dict() for found in findings.configurations],
        "best": findings.best.label if findings.best else None,
        "baseline": findings.baseline.label if findings.baseline else None,
        "comparison": part.comparison.to_dict(),
        "runs": [
            {
                "run_id": run.id,
                "params": run.params,
                "seed": run.seed,
                "status": run.status,
                "value": findings.values.get(run.id),
                "exit_code": run.exit_code,
            }
            for run in findings.runs
        ],
        "failed": {failed.run.id: failed.said for failed in findings.failed},
        "pictures": [picture.file for picture in part.pictures],
    }


def _returned(result: RunResult) -> dict[str, Any]:
    """The workflow's declared results as its code gave them, encoded: what the code says, not what we measured."""
    found = {}
    for name, output in result.workflow.results.items():
        if result.steps[output.step].status == "finished":
            value = result.steps[output.step].encoded(output.name)
            if len(json.dumps(value)) <= _LARGEST_VALUE:
                found[name] = value
    return found
