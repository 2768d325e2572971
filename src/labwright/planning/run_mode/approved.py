"""Approved means these bytes: what may run is what the handoff's digest names, and nothing that came after."""

from __future__ import annotations

from dataclasses import replace

from labwright.domain.approved_code import is_project_file, may_be_written
from labwright.domain.errors import Conflict
from labwright.planning.project.digest import current_digest
from labwright.planning.record.state import PlanRunHandoff, read_state
from labwright.planning.scan import ProjectScan
from labwright.workspace import Digest, PlanWorkspaceHandle, what_changed

_NAMED = 5


def check_approved(
    handle: PlanWorkspaceHandle, handoff: PlanRunHandoff, scan: ProjectScan, *, begun: bool = False
) -> Digest:
    """What was approved, if all is still so; else a Conflict that says what changed.

    `begun`: its runs may have written settings beside the code by now, as Hydra does, or results; those do not count.
    """
    state = read_state(handle)
    if not state.ready_for_run or state.handoff != handoff:
        raise Conflict(f"Plan {handle.id} has no such handoff (any more).", hint="Validate and approve it again.")
    approved, current = handle.listing(handoff.digest), current_digest(handle, scan)
    changed = what_changed(approved, _without_written(approved, current) if begun else current)
    if changed:
        more = f", and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        raise Conflict(
            f"Plan {handle.id} is not what was approved: {'; '.join(changed[:_NAMED])}{more}.",
            hint="Undo the change, or validate and approve the plan again.",
        )
    return approved


def _without_written(approved: Digest, current: Digest) -> Digest:
    """New code still counts: an added module can stand in the place of another."""
    facts = {
        name: value
        for name, value in current.facts.items()
        if name in approved.facts or name.endswith(".py") or not is_project_file(name)
    }
    as_approved = {name: value for name, value in approved.facts.items() if may_be_written(name)}
    return replace(current, facts={**facts, **as_approved})
