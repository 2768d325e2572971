"""The verbs of plans on statuses that no route sets yet, and on a failing disk."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Conflict
from labwright.domain.plan import PlanStatus
from labwright.planning import plans
from labwright.server.opening import open_lab, prepare_state
from labwright.settings import Settings
from labwright.store import events
from labwright.store import plans as stored
from labwright.workspace import PlanWorkspaceHandle
from tests.unit.plan_texts import GOOD

AGENT = Actor(Scope.AGENT, "a")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = open_lab(prepare_state(tmp_path), Settings(lease_dir=str(tmp_path / "leases")), "http://127.0.0.1:1")
    yield made
    made.db.reader().close()
    made.db.close()


def saved(lab: Lab, *moves: PlanStatus) -> str:
    plan_id = str(
        plans.create_document(lab, title="t", goal="g", raw_markdown=GOOD, session_id=None, actor=AGENT)["id"]
    )
    for status in moves:
        with lab.db.transaction() as tx:
            before = stored.get(tx.connection, plan_id)
            stored.change(tx, before, before.move(status, at="2099-01-01"), "person")
    return plan_id


def told(lab: Lab) -> list[tuple[str, Any]]:
    return [(event.type, event.data.get("to")) for event in events.after(lab.db.reader(), 0, 100)]


def test_edit_revokes_an_approval_and_says_so(lab: Lab) -> None:
    plan_id = saved(lab, PlanStatus.APPROVED)
    edited = plans.update_document(lab, plan_id, {"raw_markdown": f"{GOOD}\n"}, AGENT)
    assert (edited["status"], edited["version"]) == (PlanStatus.DRAFT, 2)
    assert "approved" in edited["status_reason"]
    assert told(lab)[-2:] == [("plan.updated", None), ("plan.status", "draft")]


def test_same_text_or_another_session_keeps_an_approval(lab: Lab) -> None:
    plan_id = saved(lab, PlanStatus.APPROVED)
    assert plans.update_document(lab, plan_id, {"raw_markdown": GOOD}, AGENT)["status"] is PlanStatus.APPROVED
    assert plans.update_document(lab, plan_id, {"session_id": "s"}, AGENT)["status"] is PlanStatus.APPROVED


def test_executing_plan_cannot_be_edited_archived_or_deleted(lab: Lab) -> None:
    plan_id = saved(lab, PlanStatus.APPROVED, PlanStatus.EXECUTING)
    for verb in (
        lambda: plans.update_document(lab, plan_id, {"goal": "x"}, AGENT),
        lambda: plans.archive(lab, plan_id, AGENT),
        lambda: plans.delete(lab, plan_id, AGENT),
    ):
        with pytest.raises(Conflict) as refused:
            verb()
        assert refused.value.hint
    assert plans.get(lab, plan_id)["status"] is PlanStatus.EXECUTING
    assert lab.journal.read() == ({}, set())


def test_full_disk_changes_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_id = saved(lab)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("labwright.workspace.plan_workspace.write_manifest", full)
    with pytest.raises(OSError):
        plans.update_document(lab, plan_id, {"raw_markdown": "other"}, AGENT)
    with pytest.raises(OSError):
        saved(lab)
    assert [plan.version for plan in stored.every(lab.db.reader())] == [1]
    assert plans.folder_of(lab, plan_id).paths.text.read_text() == GOOD


def test_folder_newer_than_the_database_is_left_alone(lab: Lab) -> None:
    plan_id = saved(lab)
    folder = plans.folder_of(lab, plan_id)
    plan = folder.plan()
    assert plan is not None
    newer = plan.move(PlanStatus.ARCHIVED, at="2099-01-01")
    folder.stage(newer, folder.versions(plan)[0]).publish()
    plans.settle_folders(lab)
    assert PlanWorkspaceHandle(folder.paths.dir).plan() == newer
