"""Fixtures for all tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.live_server import LiveServer


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., LiveServer]]:
    """Servers that are gone, with all their runs, when the test ends."""
    made: list[LiveServer] = []

    def make(name: str = "project", **environment: str) -> LiveServer:
        project = tmp_path / name
        project.mkdir(exist_ok=True)
        server = LiveServer(project, **environment)
        made.append(server)
        return server

    yield make
    for server in made:
        if server.process is not None and server.process.poll() is None:
            for run in server.all_runs():
                if run["status"] not in ("finished", "failed", "stopped", "lost"):
                    server.call("POST", f"/runs/{run['id']}/stop")
        server.stop()


@pytest.fixture
def server(make_server: Callable[..., LiveServer]) -> LiveServer:
    return make_server().start()


@pytest.fixture
def stage() -> Iterator[Path]:
    """A place that everybody can enter; pytest's own folders are for one user."""
    with tempfile.TemporaryDirectory(prefix="labwright-users-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
