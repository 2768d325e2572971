"""Plans as folders: names that stay inside, complete files, and a digest of every byte that counts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from labwright.domain.errors import Conflict, Invalid, NotFound
from labwright.workspace import Digest, PlanWorkspaceHandle, Workspace, what_changed
from labwright.workspace.manifest import read_manifest, write_manifest
from labwright.workspace.names import safe_id, safe_relative
from tests.unit.test_plan_moves import a_plan, a_version


@pytest.fixture
def handle(tmp_path: Path) -> PlanWorkspaceHandle:
    made = PlanWorkspaceHandle.materialize(Workspace(tmp_path / "lab"))
    for path in ("plan/implementation_plan.md", "ir/workflow.yaml", "src/experiment/workflow.py", "tests/test_a.py"):
        made.write(path, path.encode())
    return made


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "/etc", "a\\b", "a\0", "nul", "CON", "com1", "-x", ".x", "a" * 65, "ü", "a\n"],
)
def test_id_that_is_not_a_plain_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid):
        Workspace(tmp_path).plan(name)


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "a\\b", "a\0b", "a\nb", "src/nul"]
)
def test_path_that_leads_elsewhere_is_refused(handle: PlanWorkspaceHandle, path: str) -> None:
    for attempt in (handle.read, lambda name: handle.write(name, b"")):
        with pytest.raises(Invalid):
            attempt(path)


@given(st.text(max_size=30))
def test_every_accepted_path_stays_inside(text: str) -> None:
    for check in (safe_id, safe_relative):
        try:
            accepted = check(text)
        except Invalid:
            continue
        assert os.path.normpath(f"/root/{accepted}").startswith("/root/")


def test_no_link_leads_outside(handle: PlanWorkspaceHandle, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (handle.paths.dir / "reports").symlink_to(tmp_path / "outside")
    with pytest.raises(Invalid):
        handle.write("reports/x", b"")
    assert list((tmp_path / "outside").iterdir()) == []


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abc", min_size=1), values, max_size=4))
def test_manifest_survives_writing_and_reading(tmp_path_factory: pytest.TempPathFactory, manifest: Any) -> None:
    path = tmp_path_factory.mktemp("m") / "manifest.yaml"
    write_manifest(path, manifest)
    assert read_manifest(path) == manifest


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x\n",
        "a: !!python/object/apply:os.system ['true']\n",
        "- a list\n",
        "a: [",
        "[" * 5_000,
        "a: \x00",
        "x" * (5 << 20),
    ],
)
def test_invalid_manifest_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.yaml").write_text(text)
    with pytest.raises(Invalid):
        read_manifest(tmp_path / "manifest.yaml")


def test_each_part_of_the_manifest_is_updated_alone(handle: PlanWorkspaceHandle) -> None:
    handle.update_manifest(handoff={"digest": "d"})
    plan = a_plan(id=handle.id)
    handle.stage(plan, a_version()).publish()
    assert handle.plan() == plan
    assert handle.manifest()["handoff"] == {"digest": "d"}
    assert yaml.safe_load(handle.paths.manifest.read_text())["plan"]["status"] == "draft"


def test_staged_files_are_invisible_until_published(handle: PlanWorkspaceHandle) -> None:
    handle.stage(a_plan(id=handle.id), a_version(raw_markdown="one")).publish()
    staged = handle.stage(a_plan(id=handle.id, version=2), a_version(2, raw_markdown="two"))
    published = handle.plan()
    assert published is not None and published.version == 1
    assert handle.paths.text.read_text() == "one"
    assert [version.raw_markdown for version in handle.versions(published)] == ["one"]
    before = handle.digest()
    staged.publish()
    assert what_changed(before, handle.digest()) == ["plan/implementation_plan.md was changed"]
    newest = handle.plan()
    assert newest is not None
    assert [version.raw_markdown for version in handle.versions(newest)] == ["one", "two"]


def test_kill_between_write_and_rename_leaves_no_file_that_counts(
    handle: PlanWorkspaceHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle.write("src/experiment/a.py", b"A = 1\n")
    before, files = handle.digest(), set((handle.paths.dir / "src").rglob("*"))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("os.replace", Mock(side_effect=KeyboardInterrupt))
        handle.write("src/experiment/a.py", b"A = 2\n")
    assert set((handle.paths.dir / "src").rglob("*")) == files
    assert handle.digest() == before


def test_lost_version_is_read_from_the_text(handle: PlanWorkspaceHandle) -> None:
    plan = a_plan(id=handle.id)
    handle.stage(plan, a_version(raw_markdown="words")).publish()
    shutil.rmtree(handle.paths.versions)
    assert [version.raw_markdown for version in handle.versions(plan)] == ["words"]


def test_manifest_of_another_plan_is_reported(handle: PlanWorkspaceHandle) -> None:
    handle.update_manifest(plan={**a_plan().to_dict(), "status": "draft"})
    with pytest.raises(Invalid):
        handle.plan()


def test_one_changed_byte_in_covered_files_changes_the_digest(handle: PlanWorkspaceHandle) -> None:
    before = handle.digest()
    for path in list(before.files):
        content = handle.read(path)
        handle.write(path, content + b" ")
        changed = handle.digest()
        assert changed.value != before.value
        assert what_changed(before, changed) == [f"{path} was changed"]
        handle.write(path, content)
        assert handle.digest() == before


def test_caches_reports_and_results_do_not_change_the_digest(handle: PlanWorkspaceHandle) -> None:
    before = handle.digest()
    for path in (
        "src/experiment/__pycache__/workflow.cpython-311.pyc",
        "tests/.pytest_cache/x",
        "report/original.md",
        "validation/report.md",
        "results/report.md",
        "manifest.yaml",
        "versions/1.json",
        "staged/x",
    ):
        handle.write(path, b"x")
    assert handle.digest() == before


def test_added_or_removed_file_is_reported(handle: PlanWorkspaceHandle) -> None:
    before = handle.digest()
    handle.write("src/extra.py", b"")
    (handle.paths.dir / "tests" / "test_a.py").unlink()
    assert what_changed(before, handle.digest()) == ["src/extra.py was added", "tests/test_a.py was removed"]


def test_approved_facts_beside_the_files_are_part_of_the_digest(handle: PlanWorkspaceHandle) -> None:
    before = handle.digest({"environment": "a", "commands": "c"})
    after = handle.digest({"environment": "b", "commands": "c", "project's local_cfg.py": "s"})
    assert before.value != handle.digest().value
    assert what_changed(before, after) == ["the environment changed", "the project's local_cfg.py changed"]
    assert what_changed(before, before) == []


def test_names_and_contents_cannot_be_swapped() -> None:
    assert Digest({"a": "b"}, {}).value != Digest({}, {"a": "b"}).value
    assert Digest({"a": "b", "c": "d"}, {}).value == Digest({"c": "d", "a": "b"}, {}).value


def test_links_and_special_files_are_refused(handle: PlanWorkspaceHandle, tmp_path: Path) -> None:
    for name, make in {"link.py": lambda path: path.symlink_to("/etc/passwd"), "pipe": os.mkfifo}.items():
        path = handle.paths.dir / "src" / name
        make(path)  # type: ignore[operator]
        with pytest.raises(Conflict):
            handle.digest()
        path.unlink()
    (handle.paths.dir / "src").rename(tmp_path / "elsewhere")
    (handle.paths.dir / "src").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Conflict):
        handle.digest()


def test_copy_stays_what_the_digest_names(handle: PlanWorkspaceHandle) -> None:
    handle.write("src/__pycache__/x.pyc", b"cache")
    digest = handle.digest({"environment": "e"})
    folder = handle.keep_copy(digest)
    handle.write("src/experiment/workflow.py", b"edited")
    assert handle.open_copy(digest.value) == folder == handle.keep_copy(digest)
    assert (folder / "src/experiment/workflow.py").read_bytes() == b"src/experiment/workflow.py"
    assert not (folder / "src/__pycache__").exists()
    assert what_changed(handle.listing(digest.value), handle.digest({"environment": "e"})) == [
        "src/experiment/workflow.py was changed"
    ]
    for path in [folder, *folder.rglob("*")]:
        assert path.stat().st_mode & 0o222 == 0


def test_edit_between_digest_and_copy_is_noticed(handle: PlanWorkspaceHandle) -> None:
    digest = handle.digest()
    handle.write("src/experiment/workflow.py", b"edited")
    with pytest.raises(Conflict, match="changed in the meantime"):
        handle.keep_copy(digest)
    assert list(handle.paths.copies.iterdir()) == []


def test_modified_copy_is_not_opened(handle: PlanWorkspaceHandle) -> None:
    digest = handle.digest()
    file = handle.keep_copy(digest) / "tests" / "test_a.py"
    file.chmod(0o600)
    file.write_bytes(b"other")
    with pytest.raises(Conflict, match="test_a"):
        handle.open_copy(digest.value)
    with pytest.raises(NotFound):
        handle.open_copy("0" * 64)


def test_workspace_can_be_moved(handle: PlanWorkspaceHandle, tmp_path: Path) -> None:
    handle.stage(a_plan(id=handle.id), a_version(raw_markdown="words")).publish()
    digest = handle.digest()
    handle.keep_copy(digest)
    (tmp_path / "lab").rename(tmp_path / "moved")
    moved = Workspace(tmp_path / "moved").plan(handle.id)
    assert Workspace(tmp_path / "moved").plan_ids() == [handle.id]
    assert moved.digest() == digest
    assert moved.open_copy(digest.value).is_dir()
    assert str(tmp_path).encode() not in b"".join(p.read_bytes() for p in moved.paths.dir.rglob("*") if p.is_file())
    moved.remove()
    assert not moved.paths.dir.exists()
