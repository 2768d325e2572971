"""Compile a plan from its text or its goal, and validate the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.planning.ir.drafts import AskedQuestion
from labwright.planning.plans.documents import create_document, folder_of
from labwright.planning.plans.edits import saved_text
from labwright.planning.plans.preconditions import (
    check_is_person,
    check_node,
    compiled_request,
    editable_plan,
    start_compiling,
)
from labwright.planning.plans.views import View, view
from labwright.planning.record.input import report_text
from labwright.planning.record.request import ask, write_request
from labwright.planning.record.state import read_state
from labwright.store import plans as stored
from labwright.store.idempotency import IdempotencyKey


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    report: str | None = None
    answers: tuple[str, ...] = ()
    from_node: str | None = None
    rehearsal: bool | None = None  # None: as in the last compilation
    auto_approve: bool = False


def create(
    lab: Lab,
    texts: dict[str, str],
    session_id: str | None,
    options: CompileOptions | None,
    actor: Actor,
    key: IdempotencyKey | None,
) -> View:
    """Save a plan and, with `options`, compile it. If it cannot be compiled, it is not saved."""
    if options is not None:
        options = _checked(options, actor)
        if not texts["raw_markdown"].strip():
            from labwright.planning.goals.script import check_goal
            from labwright.planning.scan import scan_project

            check_goal(texts["goal"], options.report or "", scan_project(lab.paths.project))
    document = create_document(lab, **texts, session_id=session_id, actor=actor, key=key)
    if options is None:
        return view(lab, document)
    plan_id = document["id"]
    is_compiling = bool(stored.get(lab.db.reader(), plan_id).compiling_by)
    if is_compiling or read_state(folder_of(lab, plan_id)).status != "new":
        return view(lab, document)  # an earlier request with the same idempotency key started the compilation
    return compile_plan(lab, plan_id, options, actor)


def compile_plan(lab: Lab, plan_id: str, options: CompileOptions, actor: Actor) -> View:
    """Compile the saved text, or the goal if there is no text. Finished nodes are not repeated."""
    from labwright.planning.goals.script import check_goal
    from labwright.planning.nodes import pipeline
    from labwright.planning.scan import scan_project

    options = _checked(options, actor)
    scan = scan_project(lab.paths.project)
    with lab.plan_lock:
        plan, handle = editable_plan(lab, plan_id)
        text = saved_text(lab, plan, handle, actor)
        if not text.strip():
            check_goal("\n".join((plan.goal, *options.answers)), options.report or "", scan)
        if options.from_node:
            pipeline.again_from(handle, options.from_node)
        ask(
            handle,
            text,
            answers=_with_subjects(read_state(handle).questions, options.answers),
            report=options.report,
            rehearsal=options.rehearsal,
            auto_approve=str(actor) if options.auto_approve else "",
        )
        return start_compiling(lab, plan_id, actor)


def _with_subjects(questions: Sequence[AskedQuestion], answers: tuple[str, ...]) -> tuple[str, ...]:
    """Put each question's subject before its answer if there is one answer per question, in order."""
    if len(questions) != len(answers):
        return answers
    pairs = zip(questions, answers, strict=True)
    return tuple(answer if asked.subject in answer else f"{asked.subject} {answer}" for asked, answer in pairs)


def _checked(options: CompileOptions, actor: Actor) -> CompileOptions:
    check_node(options.from_node, "from_node")
    if options.auto_approve:
        check_is_person(actor)
    return options if options.report is None else replace(options, report=report_text(options.report))


def validate(lab: Lab, plan_id: str, actor: Actor, rehearsal: bool | None) -> View:
    """Run every check again on the current files."""
    from labwright.planning.nodes import pipeline

    with lab.plan_lock:
        plan, handle = editable_plan(lab, plan_id)
        request = compiled_request(plan, handle)
        saved_text(lab, plan, handle, actor)
        pipeline.again_from(handle, "ValidateWorkspace")
        facts = {"auto_approve": "", "rehearsal": request.rehearsal if rehearsal is None else rehearsal}
        write_request(handle, request.model_copy(update=facts))
        return start_compiling(lab, plan_id, actor)
