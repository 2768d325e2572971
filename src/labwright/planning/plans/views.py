"""Plans as users see them: the document, the progress of planning, its questions and its three states."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from labwright.compute.lab import Lab
from labwright.domain.errors import Invalid
from labwright.planning.plans.documents import folder_of, get_document
from labwright.planning.record.request import read_request
from labwright.planning.record.state import PlanState, read_state
from labwright.workspace import PlanWorkspaceHandle

View = dict[str, Any]
_SHOWN = ("model", "questions", "validated", "approval", "approved", "ready_for_run", "error", "feedback")


def get(lab: Lab, plan_id: str) -> View:
    return view(lab, get_document(lab, plan_id))


def view(lab: Lab, document: View) -> View:
    """Return the document's view with `planning` added; `planning` is None until the plan is compiled."""
    return {**document, "planning": planning_view(folder_of(lab, document["id"]), document["compiling_by"])}


def planning_view(handle: PlanWorkspaceHandle, compiling_by: str) -> View | None:
    try:
        if read_request(handle) is None:
            return None
        state = read_state(handle)
    except (Invalid, ValidationError) as error:  # a damaged manifest must not hide the document
        state = PlanState(status="unreadable", error=f"manifest.yaml cannot be read: {error}"[:1000])
    from labwright.planning.nodes.progress import progress_of, steps_of

    progress = progress_of(handle)
    current = next((node.node for node in progress if node.status != "finished"), "")
    facts = {name: value for name, value in state.view().items() if name in _SHOWN}
    return {
        **facts,
        "status": "compiling" if compiling_by else state.status,
        "node": current if compiling_by else state.node,
        "digest": state.validated_digest,
        "progress": [node.to_dict() for node in progress],
        "steps": steps_of(handle),
    }
