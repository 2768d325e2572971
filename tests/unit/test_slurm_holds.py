"""Hold and release orders forgotten by a killed controller are repeated; later actions of a person stay."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labwright.compute.lab import Lab
from labwright.compute.slurm import held_jobs as slurm_holds
from labwright.compute.slurm.held_jobs import SlurmHolds
from labwright.compute.slurm.launcher import SLURM
from labwright.compute.slurm.orders import HOLD, RELEASE
from labwright.domain.run import Run, RunStatus
from tests.support.lab import lab_in, make_run

HELD = "Slurm: pending (JobHeldUser)"
FREE = "Slurm: pending (Resources)"


class Queue:
    """A run of a sweep in Slurm's queue, and the orders given for it."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self.orders: list[str] = []
        self.is_paused = False
        self._holds = SlurmHolds(lab)
        run = make_run(lab, "x")
        self._run = replace(run, launcher=SLURM, slurm_job_id="7", sweep_id="sweep-x")
        self.held_file = Path(lab.paths.run(run.id).held)
        os.makedirs(self.held_file.parent, exist_ok=True)
        monkeypatch.setattr(slurm_holds, "_SETTLED_SECONDS", 0.0)
        monkeypatch.setattr(slurm_holds.sweeps, "limits", lambda _: {"sweep-x": 0} if self.is_paused else {})
        monkeypatch.setattr(lab.slurm, "hold", self._hold)
        monkeypatch.setattr(lab.slurm, "release", lambda _: self.orders.append(RELEASE))

    def _hold(self, _runs: Iterable[Run]) -> None:
        self.orders.append(HOLD)
        self.held_file.touch()

    def see(self, reason: str, status: RunStatus = RunStatus.LAUNCHING) -> list[str]:
        """Return the orders that follow from what squeue says."""
        self.orders.clear()
        self._holds.update([replace(self._run, status=status, status_reason=reason)])
        return list(self.orders)

    def pause(self) -> None:
        self.is_paused = True
        assert self.see(FREE) == [HOLD]

    def resume(self) -> None:
        self.is_paused = False
        assert self.see(HELD) == [RELEASE]


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    with lab_in(tmp_path / "project") as lab:
        yield Queue(lab, monkeypatch)
        lab.slurm.close()


def test_release_forgotten_by_the_controller_is_repeated(queue: Queue) -> None:
    queue.pause()
    assert queue.see(HELD) == []
    queue.resume()
    assert queue.see(HELD) == [RELEASE]
    assert queue.see(FREE) == [] and not queue.held_file.exists()


def test_hold_forgotten_by_the_controller_is_repeated(queue: Queue) -> None:
    queue.pause()
    assert queue.see(FREE) == [HOLD]
    assert queue.see(HELD) == [] and queue.see(FREE) == [], "what a person lets go later goes"


def test_job_held_by_a_person_after_a_release_stays_held(queue: Queue) -> None:
    queue.pause()
    queue.resume()
    queue.see(FREE)
    assert queue.see(HELD) == []


def test_job_started_after_a_release_and_then_requeued_and_held_stays_held(queue: Queue) -> None:
    queue.pause()
    queue.resume()
    queue.see("", RunStatus.RUNNING)
    assert queue.see(HELD) == []


def test_job_held_by_slurm_itself_after_a_release_is_not_released(queue: Queue) -> None:
    queue.pause()
    queue.resume()
    assert queue.see("Slurm: pending (launch failed requeued held)") == []


def test_order_is_not_repeated_before_a_controller_would_have_forgotten_it(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.pause()
    queue.resume()
    monkeypatch.setattr(slurm_holds, "_SETTLED_SECONDS", 1000.0)
    assert queue.see(HELD) == []
    assert queue.held_file.exists(), "it may still come back held"
