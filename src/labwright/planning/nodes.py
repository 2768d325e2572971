"""The eleven nodes. Each reads from the workspace, writes into it, and returns a hash of what it wrote."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from labwright.domain.clock import now
from labwright.domain.cluster import Cluster
from labwright.domain.errors import Conflict
from labwright.domain.plan_document import compose
from labwright.llm import Model, Request
from labwright.llm.model import Value
from labwright.planning import templates
from labwright.planning.checks import check_workspace
from labwright.planning.checks.subject import MODULE, SOURCE_ROOT, SYMBOL, Found
from labwright.planning.compile_ir import tasks_of, workflow_of
from labwright.planning.digest_facts import current_digest
from labwright.planning.document import sections_of
from labwright.planning.drafts import ExperimentDraft, ReportDigest
from labwright.planning.ir import read_ir, read_workflow, write_task, write_workflow
from labwright.planning.rehearsal import Rehearse, rehearsed
from labwright.planning.scan import ProjectScan
from labwright.planning.state import PlanRunHandoff, change_state, read_state
from labwright.workflow import Suspended
from labwright.workspace import PlanWorkspaceHandle

_REPORT, _DIGEST, _DRAFT = "report/original.md", "report/digest.yaml", "report/draft.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """All that the nodes share."""

    handle: PlanWorkspaceHandle
    scan: ProjectScan
    cluster: Cluster
    model: Model
    goal: str
    plan: str = ""  # the text of a saved plan to start from
    rehearse: Rehearse | None = None  # it takes a server

    def ask(self, node: str, wanted: type[Value], **given: Any) -> Value:
        feedback = read_state(self.handle).feedback.get(node, "")
        facts = {"scan": self.scan, "plan": self.plan, **given}
        return self.model.answer(Request(node=node, wanted=wanted, given=facts, feedback=feedback)).value


Node = Callable[[Planning], str]


def ingest_report(planning: Planning) -> str:
    text = "\n\n".join(part for part in (planning.goal, planning.plan) if part)
    return _keep(planning, _REPORT, text)


def draft_report_digest(planning: Planning) -> str:
    digest = planning.ask("DraftReportDigest", ReportDigest, goal=planning.goal)
    change_state(planning.handle, questions=digest.missing, model=planning.model.name)
    if digest.missing:
        raise Suspended("; ".join(question.text for question in digest.missing))
    return _keep(planning, _DIGEST, _yaml(digest.model_dump(mode="json")))


def draft_implementation_plan(planning: Planning) -> str:
    feedback = read_state(planning.handle).feedback.get("DraftReportDigest", "")
    goal = "\n".join(part for part in (feedback, planning.goal) if part)
    draft = planning.ask("DraftImplementationPlan", ExperimentDraft, goal=goal)
    _keep(planning, _DRAFT, _yaml(draft.model_dump(mode="json")))
    return _keep(planning, "plan/implementation_plan.md", _document(planning, draft))


def _document(planning: Planning, draft: ExperimentDraft) -> str:
    """A text that somebody wrote stays as it is, until they ask for another: what it says is checked, not mended."""
    feedback = read_state(planning.handle).feedback
    if planning.plan and not feedback.keys() & {"DraftReportDigest", "DraftImplementationPlan"}:
        return planning.plan
    return compose(sections_of(draft, planning.scan, planning.cluster))


def compile_workflow_ir(planning: Planning) -> str:
    workflow = workflow_of(_draft(planning))
    write_workflow(planning.handle, workflow)
    return _hash(workflow.model_dump_json())


def compile_task_ir(planning: Planning) -> str:
    draft = _draft(planning)
    entry = planning.scan.entry_point(draft.script)
    if entry is None:
        raise Conflict(f"{draft.script} is not in the project any more.", hint="Plan again.")
    tasks = tasks_of(draft, entry, planning.scan.environment)
    for task in tasks:
        write_task(planning.handle, task)
    return _hash("".join(task.model_dump_json() for task in tasks))


def generate_workflow_skeleton(planning: Planning) -> str:
    files = templates.skeleton(read_ir(planning.handle))
    return _hash("".join(_keep(planning, path, text) for path, text in files.items()))


def generate_task_tests(planning: Planning) -> str:
    return _generate(planning, "GenerateTaskTests", "tests/test_{}.py")


def generate_task_implementations(planning: Planning) -> str:
    return _generate(planning, "GenerateTaskImplementations", "src/experiment/tasks/{}.py")


def _generate(planning: Planning, node: str, path: str) -> str:
    ir = read_ir(planning.handle)
    texts = {step.id: planning.ask(node, str, ir=ir, task_id=step.id) for step in read_workflow(planning.handle).steps}
    return _hash("".join(_keep(planning, path.format(task), text) for task, text in texts.items()))


def validate_workspace(planning: Planning) -> str:
    """A failure is a result: the workspace stays for review, and is not runnable."""
    digest = current_digest(planning.handle, planning.scan)
    found = check_workspace(planning.handle, planning.scan, digest)
    rehearsal = rehearsed(planning.rehearse, planning.handle, planning.scan, digest.value, sound=not found)
    if rehearsal.outcome == "failed":
        found.append(Found(code="rehearsal_failed", place="rehearsal", message=rehearsal.reason))
    report = {"digest": digest.value, "passed": not found, "findings": [finding.to_dict() for finding in found]}
    planning.handle.write("validation/report.yaml", _yaml(report).encode())
    lines = [f"- `{f.code}` {f.place}: {f.message} {f.hint}".rstrip() for f in found] or ["Nothing was found."]
    planning.handle.write("validation/report.md", "\n".join(["# Validation", "", *lines, ""]).encode())
    change_state(planning.handle, validated=not found, validated_digest=digest.value)
    return digest.value


def human_review(planning: Planning) -> str:
    approval = read_state(planning.handle).approval
    if approval is None:
        raise Suspended("A person has to review the workspace.")
    return approval.digest


def final_handoff_check(planning: Planning) -> str:
    """Everything again, on the bytes as they now are; nothing else sets `ready_for_run`."""
    state = read_state(planning.handle)
    digest = current_digest(planning.handle, planning.scan)
    if state.approval is None or digest.value != state.approval.digest:
        raise Conflict("The workspace is not what was approved.", hint="Review it again.")
    found = check_workspace(planning.handle, planning.scan, digest)
    if found:
        raise Conflict(f"It does not pass: {found[0].message}", hint="See validation/report.md.")
    planning.handle.keep_copy(digest)
    handoff = PlanRunHandoff(
        plan_id=planning.handle.id,
        digest=digest.value,
        source_root=SOURCE_ROOT,
        module=MODULE,
        symbol=SYMBOL,
        validation={"digest": digest.value, "passed": True},
        created_at=now(),
    )
    change_state(planning.handle, ready_for_run=True, validated=True, handoff=handoff)
    return digest.value


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


def _draft(planning: Planning) -> ExperimentDraft:
    return ExperimentDraft(**yaml.safe_load(planning.handle.read(_DRAFT)))


def _keep(planning: Planning, path: str, text: str) -> str:
    planning.handle.write(path, text.encode())
    return _hash(text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
