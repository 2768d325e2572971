"""A backup is written into its own file, wherever that is and whoever else writes there."""

from __future__ import annotations

import fcntl
import tarfile
from pathlib import Path

import pytest

from labwright.compute.database.archive import archive
from labwright.domain.errors import Conflict, StorageFailed
from labwright.paths import ProjectPaths


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    paths = ProjectPaths(tmp_path / "project")
    paths.backups.mkdir(parents=True)
    (paths.backups / "labwright.db").write_bytes(b"what nobody else may read")
    return paths


def test_owner_of_a_prepared_file_cannot_read_the_backup(paths: ProjectPaths, tmp_path: Path) -> None:
    target, prepared = tmp_path / "history.tar.gz", tmp_path / "history.tar.gz.part"
    prepared.touch(0o666)
    prepared.chmod(0o666)
    with prepared.open("rb") as of_somebody:
        archive(paths, paths.backups / "labwright.db", target)
        assert of_somebody.read() == b""
    assert target.stat().st_mode & 0o777 == 0o600
    with tarfile.open(target) as tar:
        assert tar.getnames()[0] == "backups/labwright.db"
    assert not prepared.exists()


def test_link_at_the_backups_place_overwrites_nothing(paths: ProjectPaths, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "history.tar.gz.part").symlink_to(precious)
    with pytest.raises(StorageFailed):
        archive(paths, paths.backups / "labwright.db", tmp_path / "history.tar.gz")
    assert precious.read_text() == "mine"


def test_file_being_written_by_another_backup_is_left_alone(paths: ProjectPaths, tmp_path: Path) -> None:
    with (tmp_path / "history.tar.gz.part").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Conflict, match="being written already"):
            archive(paths, paths.backups / "labwright.db", tmp_path / "history.tar.gz")
    assert (tmp_path / "history.tar.gz.part").exists()
