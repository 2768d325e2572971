"""What a server knows about its machine while users, drivers and controllers come and go."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.compute.cluster import detect, machine
from labwright.compute.cluster.state import ClusterState
from labwright.domain.cluster import ClusterStatus, ClusterType, GpuwrapAdvice
from labwright.sim.gpus import SimulatedGpus
from tests.support.waiting import wait_until


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The other users on the machine; none yet."""
    found: set[str] = set()
    monkeypatch.setattr(machine, "other_users", lambda: set(found))
    return found


@pytest.fixture
def state(people: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ClusterState:
    cards = SimulatedGpus.create(tmp_path / "sim", 2)
    for name, value in cards.environment(os.environ).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_JOB_ID", "1")  # ignore a Slurm that is installed here
    started = ClusterState(str(tmp_path / "leases"))
    assert started.detect().gpuwrap is GpuwrapAdvice.OPTIONAL
    return started


@pytest.mark.parametrize("look", [ClusterState.sample_gpus, ClusterState.fresh])
def test_users_who_arrive_or_leave_later_are_noticed(
    state: ClusterState, people: set[str], look: Callable[[ClusterState], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labwright.compute.cluster.state._FRESH_SECONDS", 0.0)
    people.add("ada")
    look(state)
    assert (state.current.shared_machine, state.current.gpuwrap) == (True, GpuwrapAdvice.ENABLED)
    people.clear()
    look(state)
    assert (state.current.shared_machine, state.current.gpuwrap) == (False, GpuwrapAdvice.OPTIONAL)


def test_manual_cluster_settings_stay(state: ClusterState, people: set[str]) -> None:
    state.set_by_hand(ClusterType.LOCAL_GPU, None, False)
    people.add("ada")
    state.sample_gpus()
    state.fresh()
    assert (state.current.shared_machine, state.current.gpuwrap) == (False, GpuwrapAdvice.OPTIONAL)


def test_driver_that_hangs_at_the_first_start_is_queried_again(
    people: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cards = SimulatedGpus.create(tmp_path / "sim", 2)
    for name, value in cards.environment(os.environ).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    cards.hang()
    state = ClusterState(str(tmp_path / "leases"))
    with monkeypatch.context() as impatient:
        impatient.setattr(detect, "DRIVER_TIMEOUT_SECONDS", 0.5)
        found = state.detect()
        assert (found.type, found.status) == (ClusterType.CPU_ONLY, ClusterStatus.DEGRADED)
        assert state.sample_gpus() == ()
    cards.hang(False)
    wait_until(lambda: len(state.sample_gpus()) == 2, "the cards")
    assert (state.current.type, state.current.status) == (ClusterType.LOCAL_GPU, ClusterStatus.HEALTHY)


def test_returned_controller_is_noticed_without_a_request(
    people: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    state = ClusterState(str(tmp_path / "leases"))
    state.detect()
    state.sample_gpus()
    assert (state.fresh().type, state.fresh().status) == (ClusterType.SLURM, ClusterStatus.OFFLINE)
    row = "\\037".join(["node1", "main*", "up", "infinite", "4", "4000", "(null)", "idle", "0/4/0/4", "none"])
    sinfo.write_text(f"#!/bin/sh\n[ \"$1\" = -V ] && echo slurm 24.11.5 || printf '{row}\\n'\n")
    state.sample_gpus()
    assert (state.fresh().status, state.fresh().cpu_count) == (ClusterStatus.HEALTHY, 4)
