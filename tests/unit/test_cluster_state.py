"""What a server believes of its machine while that changes: people come and go after it has started."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.compute import machine
from labwright.compute.cluster_state import ClusterState
from labwright.domain.cluster import ClusterType, GpuwrapAdvice
from labwright.sim.gpus import SimulatedGpus


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Whoever else is on the machine; nobody yet."""
    found: set[str] = set()
    monkeypatch.setattr(machine, "other_people", lambda: set(found))
    return found


@pytest.fixture
def state(people: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ClusterState:
    cards = SimulatedGpus.create(tmp_path / "sim", 2)
    for name, value in cards.environment(os.environ).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_JOB_ID", "1")  # a Slurm that is set up here has no say
    started = ClusterState(str(tmp_path / "leases"))
    assert started.detect().gpuwrap is GpuwrapAdvice.OPTIONAL
    return started


@pytest.mark.parametrize("look", [ClusterState.look_around, ClusterState.fresh])
def test_people_who_come_later_are_noticed_and_their_leaving_too(
    state: ClusterState, people: set[str], look: Callable[[ClusterState], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labwright.compute.cluster_state._FRESH_SECONDS", 0.0)
    people.add("ada")
    look(state)
    assert (state.current.shared_machine, state.current.gpuwrap) == (True, GpuwrapAdvice.ENABLED)
    people.clear()
    look(state)
    assert (state.current.shared_machine, state.current.gpuwrap) == (False, GpuwrapAdvice.OPTIONAL)


def test_what_a_person_said_of_the_machine_stays(state: ClusterState, people: set[str]) -> None:
    state.set_by_hand(ClusterType.LOCAL_GPU, None, False)
    people.add("ada")
    state.look_around()
    state.fresh()
    assert (state.current.shared_machine, state.current.gpuwrap) == (False, GpuwrapAdvice.OPTIONAL)
