"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from labwright.sim.slurm import SimulatedSlurm, SlurmSize, simulated_slurm
from labwright.sim.slurm_config import Timers
from tests.support.children import end_all
from tests.support.live_server import ENDED, LiveServer
from tests.support.slurm import slurm_server

# The same commit gives the same result twice, also on a busy machine. `make test-all` uses new random examples.
settings.register_profile("same", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("searching", deadline=None, max_examples=300)
settings.load_profile("same")
# Background processes ignore SIGINT by default, and their children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    """Fail the test that leaves a process behind. Otherwise a later test would fail instead."""
    yield
    end_all()


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., LiveServer]]:
    """Make servers that end with all their runs when the test ends."""
    made: list[LiveServer] = []

    def make(name: str = "project", **environment: str) -> LiveServer:
        project = tmp_path / name
        project.mkdir(exist_ok=True)
        server = LiveServer(project, **environment)
        made.append(server)
        return server

    yield make
    for server in made:
        stop_all(server)
        server.stop()


def stop_all(server: LiveServer) -> None:
    if server.process is not None and server.process.poll() is None:
        for run in server.all_runs():
            if run["status"] not in ENDED:
                server.call("POST", f"/runs/{run['id']}/stop")


@pytest.fixture
def server(make_server: Callable[..., LiveServer]) -> LiveServer:
    return make_server().start()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server shared by the tests of a file, which look only at their own runs."""
    project = tmp_path_factory.mktemp("shared") / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="8").start()
    yield server
    stop_all(server)
    server.stop()


@pytest.fixture(scope="session")
def slurm() -> Iterator[SimulatedSlurm]:
    """A Slurm shared by all tests that leave it unchanged."""
    with simulated_slurm(SlurmSize(nodes=3, gpus=2)) as cluster:
        yield cluster


@pytest.fixture
def own_slurm() -> Iterator[SimulatedSlurm]:
    """A Slurm for tests that break it: two nodes, and short timeouts for missing ones."""
    with simulated_slurm(SlurmSize(nodes=2, gpus=2), Timers(node_silence_seconds=4)) as cluster:
        yield cluster


@pytest.fixture
def patient_slurm() -> Iterator[SimulatedSlurm]:
    """A Slurm with a long grace period between TERM and KILL, so that a busy machine does not cut a job short."""
    with simulated_slurm(SlurmSize(nodes=2, gpus=2), Timers(kill_wait_seconds=10)) as cluster:
        yield cluster


@pytest.fixture
def make_slurm_server(tmp_path: Path) -> Iterator[Callable[..., LiveServer]]:
    """Make servers in front of a Slurm that end with all their runs when the test ends."""
    made: list[LiveServer] = []

    def make(cluster: SimulatedSlurm, name: str = "project", **environment: str) -> LiveServer:
        made.append(slurm_server(tmp_path / name, cluster, **environment))
        return made[-1]

    yield make
    for server in made:
        stop_all(server)
        server.stop()


@pytest.fixture
def stage() -> Iterator[Path]:
    """A folder that everybody can enter. pytest's own folders are private to one user."""
    with tempfile.TemporaryDirectory(prefix="labwright-users-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
