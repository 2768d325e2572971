"""Plans survive kills. Each verb is killed at one line, and the next lab that opens checks the result."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.database.rebuild import rebuild
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.planning import plans
from labwright.server.opening import open_lab, prepare_state
from labwright.services import housekeeping
from labwright.settings import Settings
from labwright.store.idempotency import IdempotencyKey
from labwright.workspace import Workspace
from tests.unit.plan_texts import GOOD

PERSON = Actor(Scope.PERSON)
KEY = IdempotencyKey("k", "POST /plans", "1")
TEXTS = {"title": "Learning rate", "goal": "Which one?", "raw_markdown": GOOD, "session_id": None}
KILL = "os.kill(os.getpid(), 9)"
BEFORE_COMMIT = f"""
real = PlanWorkspaceHandle.stage
def stage(self, *given):
    real(self, *given)
    {KILL}
PlanWorkspaceHandle.stage = stage
"""
AFTER_COMMIT = f"""
def publish(self):
    if self._staged:
        {KILL}
plans._Saving.publish = publish
"""
BETWEEN_RENAMES = f"""
real = os.replace
def replace(source, target):
    if str(target).endswith("/manifest.yaml") and "/staged/" not in str(target):
        {KILL}
    real(source, target)
plan_workspace.os = type("Os", (), {{"replace": staticmethod(replace)}})
"""
BEFORE_DELETE_COMMIT = f"""
real = plans.plans.delete
def delete(*given):
    real(*given)
    {KILL}
plans.plans.delete = delete
"""
AFTER_DELETE_COMMIT = f"""
def remove(self):
    {KILL}
PlanWorkspaceHandle.remove = remove
"""
KILLED = """
import json, os, sys
from pathlib import Path
from labwright.domain.actor import Actor, Scope
from labwright.server.opening import open_lab, prepare_state
from labwright.planning.plans import documents as plans
from labwright.settings import Settings
from labwright.store.idempotency import IdempotencyKey
from labwright.workspace import PlanWorkspaceHandle, plan_workspace
project, verb, given = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
lab = open_lab(prepare_state(project), Settings(lease_dir=str(project / "leases")), "")
@POINT@
key = {"key": IdempotencyKey("k", "POST /plans", "1")} if verb == "create_document" else {}
getattr(plans, verb)(lab, *given[0], actor=Actor(Scope.PERSON), **given[1], **key)
"""


@contextlib.contextmanager
def opened(project: Path) -> Iterator[Lab]:
    """Open the lab as a server has it after its start."""
    lab = open_lab(prepare_state(project), Settings(lease_dir=str(project / "leases")), "")
    try:
        yield lab
    finally:
        lab.db.reader().close()
        lab.db.close()


def killed_at(project: Path, point: str, verb: str, *given: Any, **named: Any) -> None:
    """Run a process that calls the verb and is killed at this point."""
    script = KILLED.replace("@POINT@", point)
    command = [sys.executable, "-c", script, str(project), verb, json.dumps([given, named])]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def lose_database(project: Path) -> None:
    for path in (project / ".labwright").glob("labwright.db*"):
        path.unlink()


def create(lab: Lab, key: IdempotencyKey | None = None, **texts: Any) -> dict[str, Any]:
    return plans.create_document(lab, actor=PERSON, key=key, **{**TEXTS, **texts})


def patch(lab: Lab, plan_id: str, **changes: Any) -> dict[str, Any]:
    return plans.update_document(lab, plan_id, changes, PERSON)


def listed(lab: Lab) -> list[str]:
    return [plan.id for plan in plans.page(lab, (), None, 100, None)[0]]


def texts_of(lab: Lab, plan_id: str) -> list[str]:
    return [version.raw_markdown for version in plans.versions(lab, plan_id, 100, None)[0]]


def test_kill_before_the_commit_leaves_no_plan(tmp_path: Path) -> None:
    killed_at(tmp_path, BEFORE_COMMIT, "create_document", **TEXTS)
    with opened(tmp_path) as lab:
        assert listed(lab) == []
        again = create(lab, KEY)["id"]
    lose_database(tmp_path)
    with opened(tmp_path) as lab:
        assert listed(lab) == [again]
        (left,) = [path for path in lab.paths.plans.iterdir() if path.name != again]
        os.utime(left, (0, 0))
        assert housekeeping.collect(lab, PERSON, dry_run=False)["orphan_folders"] == 1
    assert not left.exists()


@pytest.mark.parametrize("point", [AFTER_COMMIT, BETWEEN_RENAMES], ids=["after commit", "between renames"])
def test_kill_after_the_commit_loses_nothing(tmp_path: Path, point: str) -> None:
    with opened(tmp_path) as lab:
        old = create(lab)["id"]
    killed_at(tmp_path, point, "update_document", old, {"raw_markdown": "second"})
    killed_at(tmp_path, point, "create_document", **{**TEXTS, "title": "new"})
    with opened(tmp_path) as lab:
        assert plans.get_document(lab, old)["raw_markdown"] == "second"
        new = create(lab, KEY, title="new")["id"]
        assert listed(lab) == [new, old]
    lose_database(tmp_path)
    with opened(tmp_path) as lab:
        assert listed(lab) == [new, old]
        assert texts_of(lab, old) == ["second", GOOD]


@pytest.mark.parametrize("point", [BEFORE_COMMIT, BETWEEN_RENAMES], ids=["before commit", "between renames"])
def test_kill_and_a_lost_database_leave_a_complete_version(tmp_path: Path, point: str) -> None:
    with opened(tmp_path) as lab:
        plan_id = create(lab)["id"]
    killed_at(tmp_path, point, "update_document", plan_id, {"raw_markdown": "second"})
    lose_database(tmp_path)
    with opened(tmp_path) as lab:
        plan = plans.get_document(lab, plan_id)
        assert (plan["version"], plan["raw_markdown"], plan["valid"]) == (1, GOOD, True)
        assert patch(lab, plan_id, raw_markdown="third")["version"] == 2
        assert texts_of(lab, plan_id) == ["third", GOOD]


def test_kill_during_a_delete_restores_nothing_deleted(tmp_path: Path) -> None:
    with opened(tmp_path) as lab:
        plan_id = create(lab)["id"]
    killed_at(tmp_path, BEFORE_DELETE_COMMIT, "delete", plan_id)
    with opened(tmp_path) as lab:
        assert plans.get_document(lab, plan_id)["raw_markdown"] == GOOD
    killed_at(tmp_path, AFTER_DELETE_COMMIT, "delete", plan_id)
    with opened(tmp_path) as lab:
        assert listed(lab) == []
        assert housekeeping.collect(lab, PERSON, dry_run=False)["orphan_folders"] == 1
    lose_database(tmp_path)
    with opened(tmp_path) as lab:
        assert listed(lab) == []


def test_rebuild_restores_plans_from_their_folders(tmp_path: Path) -> None:
    with opened(tmp_path) as lab:
        made = [create(lab, title=f"plan {i}", session_id="s")["id"] for i in range(4)]
        patch(lab, made[0], raw_markdown="\0 second \u202e", goal="other")
        plans.archive(lab, made[1], PERSON)
        plans.delete(lab, made[2], PERSON)
        before = [plans.get_document(lab, plan_id) for plan_id in (made[0], made[1], made[3])]
        history = plans.versions(lab, made[0], 100, None)
    lose_database(tmp_path)
    (lab.paths.plans / "plan-1111111111").mkdir()
    (lab.paths.plans / "plan-1111111111" / "manifest.yaml").write_text("a: [")
    (lab.paths.plans / "stranger").mkdir()
    result = rebuild(lab.paths)
    assert (result.plans, result.unreadable) == (3, 1)
    with opened(tmp_path) as lab:
        assert [plans.get_document(lab, plan["id"]) for plan in before] == before
        assert plans.versions(lab, made[0], 100, None) == history
        assert listed(lab) == [made[3], made[0]]


def test_removed_folder_is_written_again(tmp_path: Path) -> None:
    with opened(tmp_path) as lab:
        plan_id = create(lab)["id"]
        patch(lab, plan_id, raw_markdown="second")
    Workspace(tmp_path / ".labwright").plan(plan_id).remove()
    with opened(tmp_path):
        pass
    lose_database(tmp_path)
    with opened(tmp_path) as lab:
        assert texts_of(lab, plan_id) == ["second", GOOD]
