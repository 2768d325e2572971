"""Edits of the document and of the workspace. Every edit withdraws the approval."""

from __future__ import annotations

from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import SYSTEM, Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.plans.documents import change, folder_of, update_document
from labwright.planning.plans.views import View, view
from labwright.planning.record.request import read_request
from labwright.planning.record.state import change_state, read_state
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle

UNAPPROVED: dict[str, Any] = {"approval": None, "ready_for_run": False, "handoff": None}


def edit(lab: Lab, plan_id: str, changes: dict[str, Any], actor: Actor, based_on: int | None) -> View:
    """Save changes of the document. A new version loses the approval and the validation of the old one."""
    with lab.plan_lock:
        before = stored.get(lab.db.reader(), plan_id)
        document = update_document(lab, plan_id, changes, actor, based_on=based_on)
        if document["version"] != before.version:
            _invalidate(folder_of(lab, plan_id))
    return view(lab, document)


def withdraw_approval(lab: Lab, plan_id: str, reason: str, actor: Actor) -> None:
    """Withdraw the approval after a change of the workspace or of something else that the approval covers."""
    _invalidate(folder_of(lab, plan_id))
    change(lab, plan_id, lambda plan: as_draft(plan, reason), actor)


def settle_approval(lab: Lab, plan: Plan) -> None:
    """At start: withdraw an approval that only the database or only the manifest has, because of a kill in between."""
    if plan.compiling_by or plan.status not in (PlanStatus.DRAFT, PlanStatus.APPROVED):
        return
    ready = read_state(folder_of(lab, plan.id)).ready_for_run
    if ready != (plan.status is PlanStatus.APPROVED):
        withdraw_approval(lab, plan.id, "the server was killed during a change of the plan", SYSTEM)


def as_draft(plan: Plan, reason: str) -> Plan:
    return plan if plan.status is PlanStatus.DRAFT else plan.move(PlanStatus.DRAFT, at=now(), reason=reason)


def _invalidate(handle: PlanWorkspaceHandle) -> None:
    if read_request(handle) is not None:
        change_state(handle, **UNAPPROVED, validated=False)


def saved_text(lab: Lab, plan: Plan, handle: PlanWorkspaceHandle, actor: Actor) -> str:
    """Return the plan's text. If somebody edited the file on disk, save that text as a new version first."""
    saved = stored.version(lab.db.reader(), plan.id, plan.version).raw_markdown
    try:
        on_disk = handle.paths.text.read_bytes().decode()
    except FileNotFoundError:
        handle.write(str(handle.paths.text.relative_to(handle.paths.dir)), saved.encode())
        return saved
    except UnicodeDecodeError as error:
        raise Conflict("plan/implementation_plan.md is not UTF-8.", hint="Save it as UTF-8.") from error
    if on_disk != saved:
        edit(lab, plan.id, {"raw_markdown": on_disk}, actor, None)
    return on_disk
