"""HumanReview: wait until a person, or a gate policy that says so, has approved these bytes."""

from __future__ import annotations

from labwright.planning.nodes.planning import Planning
from labwright.planning.record.state import read_state
from labwright.workflow import Suspended


def human_review(planning: Planning) -> str:
    approval = read_state(planning.handle).approval
    if approval is None:
        raise Suspended("A person has to review the workspace.")
    return approval.digest
