"""Edits of the document and of the workspace, and what they take back."""

from __future__ import annotations

from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import SYSTEM, Actor
from labwright.domain.errors import Conflict
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.plan_views import View, view
from labwright.planning.request import read_request
from labwright.planning.state import change_state, read_state
from labwright.planning.verbs.standing import unapproved
from labwright.services import plans
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle

UNAPPROVED: dict[str, Any] = {"approval": None, "ready_for_run": False, "handoff": None}
VOID: dict[str, Any] = {**UNAPPROVED, "validated": False}


def edit(lab: Lab, plan_id: str, changes: dict[str, Any], actor: Actor, based_on: int | None) -> View:
    """An approval, and what validation said, are for the words as they were."""
    with lab.plan_lock:
        before = stored.get(lab.db.reader(), plan_id)
        made = plans.update(lab, plan_id, changes, actor, based_on=based_on)
        if made["version"] != before.version:
            _void(plans.folder_of(lab, plan_id))
    return view(lab, made)


def withdraw_approval(lab: Lab, plan_id: str, reason: str, actor: Actor) -> None:
    """After a change of the workspace, or of what it was approved with."""
    _void(plans.folder_of(lab, plan_id))
    plans.change(lab, plan_id, lambda plan: unapproved(plan, reason), actor)


def settle(lab: Lab, plan: Plan) -> None:
    """At start: a kill may have come between the plan's record and its manifest. Neither may say more than both do."""
    if plan.compiling_by or plan.status not in (PlanStatus.DRAFT, PlanStatus.APPROVED):
        return
    ready = read_state(plans.folder_of(lab, plan.id)).ready_for_run
    if ready != (plan.status is PlanStatus.APPROVED):
        withdraw_approval(lab, plan.id, "the server was killed while it was changed", SYSTEM)


def _void(handle: PlanWorkspaceHandle) -> None:
    if read_request(handle) is not None:
        change_state(handle, **VOID)


def saved_text(lab: Lab, plan: Plan, handle: PlanWorkspaceHandle, actor: Actor) -> str:
    """What was edited in the file itself becomes a version first: there is one text, not two."""
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
