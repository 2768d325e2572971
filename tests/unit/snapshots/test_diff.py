"""Differences between two snapshots, within size limits."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from labwright.compute.snapshot import SnapshotStore, diff
from tests.support.snapshots import MB, write


def test_diff_names_and_shows_changes(project: Path, store: SnapshotStore) -> None:
    write(project, {"train.py": "lr = 1\n", "gone.py": "x\n", "same.py": "s\n", "run.sh": "r\n"})
    (project / "photo").write_bytes(b"\0\1\2")
    digest = store.take(project).hash
    write(project, {"train.py": "lr = 2\n", "new.py": "n"})
    (project / "gone.py").unlink()
    (project / "run.sh").chmod(0o755)
    (project / "photo").write_bytes(b"\0\1\3")
    os.utime(project / "same.py", (1, 1))
    found = store.diff(digest, project)
    assert (found.added, found.removed) == (("new.py",), ("gone.py",))
    assert found.changed == ("photo", "run.sh", "train.py")
    assert "-lr = 1\n+lr = 2\n" in found.text
    assert "mode 100644 → 100755" in found.text
    assert "diff photo\n(binary" in found.text
    assert "+n\n\\ No newline" in found.text
    assert not found.truncated


def test_diff_has_a_bounded_size(project: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MAX_TEXT", 5_000)
    write(project, {f"{number}.py": "old\n" * 300 for number in range(20)} | {"long.csv": "1\n" * 6000})
    digest = store.take(project).hash
    write(project, {f"{number}.py": "new\n" * 300 for number in range(20)} | {"long.csv": "2\n" * 6000})
    found = store.diff(digest, project)
    assert len(found.changed) == 21
    assert found.truncated
    assert len(found.text) < 5_100


def test_diff_says_when_only_size_and_time_are_known(project: Path, store: SnapshotStore) -> None:
    write(project, {"same.bin": "a" * (MB + 1), "other.bin": "a" * (MB + 1), "grown.bin": "a" * (MB + 1)})
    digest = store.take(project).hash
    os.utime(project / "other.bin", (1, 1))
    write(project, {"grown.bin": "a" * (MB + 2)})
    found = store.diff(digest, project)
    assert (found.changed, found.uncertain) == (("grown.bin",), ("other.bin",))


def test_diff_stores_nothing_and_follows_no_link(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(tmp_path, {"outside/secret.py": "secret\n"})
    write(project, {"lib/secret.py": "public\n"})
    digest = store.take(project).hash
    shutil.rmtree(project / "lib")
    (project / "lib").symlink_to("../outside")
    before = store.size()
    found = store.diff(digest, project)
    assert (found.added, found.removed) == (("lib",), ("lib/secret.py",))
    assert "+secret" not in found.text
    assert store.size() == before
