"""A project, and a store beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from labwright.compute.snapshot import SnapshotStore
from tests.support.snapshots import MB


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def store(project: Path) -> SnapshotStore:
    return SnapshotStore(project / ".labwright" / "snapshots", MB)
