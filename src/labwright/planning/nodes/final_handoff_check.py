"""FinalHandoffCheck: everything again, on the bytes as they now are; nothing else sets `ready_for_run`."""

from __future__ import annotations

from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.planning.checks import check_workspace
from labwright.planning.checks.subject import MODULE, SOURCE_ROOT, SYMBOL
from labwright.planning.nodes.planning import Planning
from labwright.planning.project.digest import current_digest
from labwright.planning.record.state import PlanRunHandoff, change_state, read_state

_WITHOUT = "labwright plan validate {} --no-rehearsal"


def final_handoff_check(planning: Planning) -> str:
    state = read_state(planning.handle)
    digest = current_digest(planning.handle, planning.scan)
    if state.approval is None or digest.value != state.approval.digest:
        raise Conflict("The workspace is not what was approved.", hint="Review it again.")
    found = check_workspace(planning.handle, planning.scan, digest)
    if found:
        raise Conflict(f"It does not pass: {found[0].message}", hint="See validation/report.md.")
    if state.rehearsal_failed and state.validated_digest == digest.value:
        words = f"Its rehearsal failed: {state.rehearsal_failed}"
        raise Conflict(words, hint=f"Mend it and try again, or go without: {_WITHOUT.format(planning.handle.id)}")
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
