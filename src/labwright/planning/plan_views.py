"""What people are told of a plan beside its text: how far planning is, what it asks, and the three lights."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from labwright.compute.lab import Lab
from labwright.domain.errors import Invalid
from labwright.planning.progress import NodeProgress, progress_of, steps_of
from labwright.planning.request import read_request
from labwright.planning.state import PlanState, read_state
from labwright.services import plans
from labwright.workspace import PlanWorkspaceHandle

View = dict[str, Any]
_SHOWN = ("model", "questions", "validated", "approval", "approved", "ready_for_run", "error", "feedback")


def view(lab: Lab, plan: View) -> View:
    """The view of the document, and what planning made of it; `planning` is null until it was compiled."""
    return {**plan, "planning": planning_view(plans.folder_of(lab, plan["id"]), plan["compiling_by"])}


def planning_view(handle: PlanWorkspaceHandle, compiling_by: str) -> View | None:
    try:
        if read_request(handle) is None:
            return None
        state = read_state(handle)
    except (Invalid, ValidationError) as error:  # somebody wrote into the manifest; the document is still there
        state = PlanState(status="unreadable", error=f"manifest.yaml cannot be understood: {error}"[:1000])
    progress = progress_of(handle)
    facts = {name: value for name, value in state.view().items() if name in _SHOWN}
    return {
        **facts,
        "status": "compiling" if compiling_by else state.status,
        "node": _current(progress) if compiling_by else state.node,
        "digest": state.validated_digest,
        "progress": [node.to_dict() for node in progress],
        "steps": steps_of(handle),
    }


def _current(progress: list[NodeProgress]) -> str:
    return next((node.node for node in progress if node.status != "finished"), "")
