"""A plan's statuses: one table of moves, and how an edit affects an approval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from labwright.domain.errors import Conflict, IllegalMove
from labwright.domain.plan import MOVES, Plan, PlanStatus, PlanVersion


def a_plan(**facts: Any) -> Plan:
    known: dict[str, Any] = {"id": "plan-0000000000", "title": "t", "goal": "g", "created_by": "person"}
    return Plan(**{**known, "created_at": "2026-01-01", "updated_at": "2026-01-01", **facts})


def a_version(number: int = 1, **facts: Any) -> PlanVersion:
    known: dict[str, Any] = {"title": "t", "goal": "g", "raw_markdown": "text", "created_by": "person"}
    return PlanVersion(**{**known, "version": number, "created_at": "2026-01-02", **facts})


@pytest.mark.parametrize("start", PlanStatus)
@pytest.mark.parametrize("end", PlanStatus)
def test_status_changes_only_as_the_table_says(start: PlanStatus, end: PlanStatus) -> None:
    plan = replace(a_plan(), status=start)
    if end in MOVES[start]:
        assert plan.move(end, at="2026-02-01", reason="so").status is end
    else:
        with pytest.raises(IllegalMove) as refused:
            plan.move(end, at="2026-02-01")
        assert refused.value.hint


def test_nothing_executes_without_approval() -> None:
    """An exception is a plan that was executed as approved before: an edit turns it into a draft or is refused."""
    executes = [status for status in PlanStatus if PlanStatus.EXECUTING in MOVES[status]]
    assert executes == [PlanStatus.APPROVED, PlanStatus.COMPLETED, PlanStatus.FAILED]


@pytest.mark.parametrize("status", [PlanStatus.DRAFT, PlanStatus.APPROVED, PlanStatus.FAILED])
def test_edit_turns_the_plan_into_a_draft(status: PlanStatus) -> None:
    edited = replace(a_plan(), status=status).edited(a_version(2, title="new"), valid=True)
    assert (edited.status, edited.version, edited.title, edited.valid) == (PlanStatus.DRAFT, 2, "new", True)
    assert bool(edited.status_reason) == (status is not PlanStatus.DRAFT)


@pytest.mark.parametrize("status", [PlanStatus.EXECUTING, PlanStatus.COMPLETED, PlanStatus.ARCHIVED])
def test_plan_that_runs_or_has_results_cannot_be_edited(status: PlanStatus) -> None:
    with pytest.raises(Conflict) as refused:
        replace(a_plan(), status=status).edited(a_version(2), valid=True)
    assert refused.value.hint


def test_records_survive_storage() -> None:
    assert Plan.from_dict(a_plan(session_id="s").to_dict()) == a_plan(session_id="s")
    assert PlanVersion.from_dict(a_version(3, raw_markdown="\0").to_dict()) == a_version(3, raw_markdown="\0")
    for broken in ({"version": "1"}, {"title": None}):
        with pytest.raises(ValueError):
            Plan.from_dict({**a_plan().to_dict(), **broken})
        with pytest.raises(ValueError):
            PlanVersion.from_dict({**a_version().to_dict(), **broken})
