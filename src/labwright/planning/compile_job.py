"""One compilation, from what was asked for to a workspace that waits for its review, or may run.

The plan's record says that it is under way until the last line here: after a kill it is called again, and goes on.
"""

from __future__ import annotations

import threading
from functools import partial

from labwright.compute.lab import Lab
from labwright.domain.actor import SYSTEM, Actor
from labwright.domain.clock import now
from labwright.domain.errors import LabwrightError
from labwright.domain.plan import Plan
from labwright.domain.plan_document.reader import read
from labwright.llm import Model
from labwright.planning.earlier_work import earlier_work
from labwright.planning.news import node_news, tell_of_wait
from labwright.planning.nodes import Planning
from labwright.planning.nodes.pipeline import approve, run_pipeline
from labwright.planning.plans import change, folder_of, update_document
from labwright.planning.plans.history import record_compilation
from labwright.planning.record.request import CompileRequest, hash_of, read_request, write_request
from labwright.planning.record.state import PlanState, change_state
from labwright.planning.rehearsal import forget_rehearsal, rehearse_on
from labwright.planning.run_mode.stopping import stop_what_it_started
from labwright.planning.scan import scan_project
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle

_LONGEST_TITLE = 200
_ASKS = {"needs_input": "answers", "waiting_for_review": "review"}  # of a person, by where planning stands


def carry_out(lab: Lab, plan: Plan, model: Model, stopping: threading.Event) -> None:
    handle = folder_of(lab, plan.id)
    try:
        state = _run(lab, plan, handle, model, stopping)
    except LabwrightError as error:
        words = f"{error.message} {error.hint}".strip()
        state = change_state(handle, status="failed", error=words, ready_for_run=False)
    finish(lab, plan, state)


def leave_off(lab: Lab, plan: Plan) -> None:
    """What is done stays: compiled again, it goes on from there, and is rehearsed anew."""
    handle, actor = folder_of(lab, plan.id), Actor.of(plan.stopped_by)
    stop_what_it_started(lab, plan.id, actor)
    forget_rehearsal(handle)
    finish(lab, plan, change_state(handle, status="failed", error=f"stopped by {actor}", ready_for_run=False))


def finish(lab: Lab, plan: Plan, state: PlanState) -> None:
    why = "" if state.ready_for_run else state.error or f"it is {state.status.replace('_', ' ')}"
    if state.ready_for_run and state.approval and state.approval.automatic:
        why = f"without a review, as {state.approval.by} wanted it"

    def compiled(plan: Plan) -> Plan:
        return plan.compiled(ready=state.ready_for_run, why=why, asks=_ASKS.get(state.status, ""), at=now())

    change(lab, plan.id, compiled, Actor.of(plan.compiling_by))


def _run(lab: Lab, plan: Plan, handle: PlanWorkspaceHandle, model: Model, stopping: threading.Event) -> PlanState:
    request, actor = read_request(handle) or CompileRequest(), Actor.of(plan.compiling_by)
    planning = _planning(lab, plan, handle, request, model, stopping)
    tell = node_news(lab, plan.id, actor, stopping)
    state = run_pipeline(planning, tell)
    _save_document(lab, handle)
    record_compilation(handle, planning.scan, str(actor))
    if request.auto_approve and state.status == "waiting_for_review" and state.validated:
        approve(handle, planning.scan, state.validated_digest, request.auto_approve, automatic=True)
        state = run_pipeline(planning, tell)
    return state


def _planning(
    lab: Lab, plan: Plan, handle: PlanWorkspaceHandle, request: CompileRequest, model: Model, stopping: threading.Event
) -> Planning:
    scan, actor = scan_project(lab.paths.project), Actor.of(plan.compiling_by)
    return Planning(
        handle=handle,
        scan=scan,
        cluster=lab.cluster.current,
        model=model,
        goal=request.words(plan.goal),
        report=request.report(handle),
        plan=request.source(handle),
        wishes=request.wishes(),
        rehearse=rehearse_on(
            lab, actor, enabled=request.rehearsal, stopping=stopping, on_wait=partial(tell_of_wait, lab, plan.id, actor)
        ),
        history=earlier_work(lab, scan, plan.id),
        stopping=stopping,
    )


def _save_document(lab: Lab, handle: PlanWorkspaceHandle) -> None:
    """What planning wrote becomes a version like any other."""
    if not handle.paths.text.exists():
        return
    text = handle.paths.text.read_bytes().decode()
    plan = stored.get(lab.db.reader(), handle.id)
    if text != stored.version(lab.db.reader(), plan.id, plan.version).raw_markdown:
        title = read(text).sections.title[:_LONGEST_TITLE] or plan.title
        update_document(lab, plan.id, {"raw_markdown": text, "title": title}, SYSTEM, while_compiling=True)
    request = read_request(handle) or CompileRequest()
    write_request(handle, request.model_copy(update={"drafted": hash_of(text)}))
