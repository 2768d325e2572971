"""Compile a plan, from its text or from its goal; and validate what was compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.planning import pipeline
from labwright.planning.drafts import AskedQuestion
from labwright.planning.goal_check import check_goal
from labwright.planning.handed_in import report_text
from labwright.planning.plan_views import View, view
from labwright.planning.request import ask, write_request
from labwright.planning.scan import scan_project
from labwright.planning.state import read_state
from labwright.planning.verbs.editing import saved_text
from labwright.planning.verbs.standing import at_rest, begin, check_node, only_a_person, request_of
from labwright.services import plans
from labwright.store import plans as stored
from labwright.store.idempotency import IdempotencyKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a plan is to be compiled."""

    report: str | None = None
    answers: tuple[str, ...] = ()
    from_node: str | None = None
    rehearsal: bool | None = None  # None: as it was
    auto_approve: bool = False


def create(
    lab: Lab,
    texts: dict[str, str],
    session_id: str | None,
    wanted: Wanted | None,
    actor: Actor,
    key: IdempotencyKey | None,
) -> View:
    """Keep a plan; and compile it at once, where that is wanted. What cannot be compiled is not kept either."""
    if wanted is not None:
        wanted = _checked(wanted, actor)
        if not texts["raw_markdown"].strip():
            check_goal(texts["goal"], wanted.report or "", scan_project(lab.paths.project))
    made = plans.create(lab, **texts, session_id=session_id, actor=actor, key=key)
    if wanted is None or _has_begun(lab, made["id"]):
        return view(lab, made)
    return compile_plan(lab, made["id"], wanted, actor)


def _has_begun(lab: Lab, plan_id: str) -> bool:
    """Where it is asked for again, after a broken connection. A kill before the record of it has begun nothing."""
    compiling = bool(stored.get(lab.db.reader(), plan_id).compiling_by)
    return compiling or read_state(plans.folder_of(lab, plan_id)).status != "new"


def compile_plan(lab: Lab, plan_id: str, wanted: Wanted, actor: Actor) -> View:
    """From the saved text where there is one, else from the goal. What is done already is not done again."""
    wanted = _checked(wanted, actor)
    scan = scan_project(lab.paths.project)
    with lab.plan_lock:
        plan, handle = at_rest(lab, plan_id)
        text = saved_text(lab, plan, handle, actor)
        if not text.strip():
            check_goal("\n".join((plan.goal, *wanted.answers)), wanted.report or "", scan)
        if wanted.from_node:
            pipeline.again_from(handle, wanted.from_node)
        ask(
            handle,
            text,
            answers=_read_with(read_state(handle).questions, wanted.answers),
            report=wanted.report,
            rehearsal=wanted.rehearsal,
            auto_approve=str(actor) if wanted.auto_approve else "",
        )
        return begin(lab, plan_id, actor)


def _read_with(questions: Sequence[AskedQuestion], answers: tuple[str, ...]) -> tuple[str, ...]:
    """Answers to each question in turn mean what was asked about; fewer or more of them have to say what they mean."""
    if len(questions) != len(answers):
        return answers
    pairs = zip(questions, answers, strict=True)
    return tuple(words if asked.subject in words else f"{asked.subject} {words}" for asked, words in pairs)


def _checked(wanted: Wanted, actor: Actor) -> Wanted:
    check_node(wanted.from_node, "from_node")
    if wanted.auto_approve:
        only_a_person(actor)
    return wanted if wanted.report is None else replace(wanted, report=report_text(wanted.report))


def validate(lab: Lab, plan_id: str, actor: Actor, rehearsal: bool | None) -> View:
    """Every check again, on the files as they now are."""
    with lab.plan_lock:
        plan, handle = at_rest(lab, plan_id)
        request = request_of(plan, handle)
        saved_text(lab, plan, handle, actor)
        pipeline.again_from(handle, "ValidateWorkspace")
        facts = {"auto_approve": "", "rehearsal": request.rehearsal if rehearsal is None else rehearsal}
        write_request(handle, request.model_copy(update=facts))
        return begin(lab, plan_id, actor)
