"""The clock is set by hand: timeouts still end, and a run's duration is the time that passed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from labwright.compute.local.recover import recover
from labwright.domain.clock import rfc3339, seconds_apart
from labwright.domain.run import RunStatus
from labwright.paths import RunPaths
from labwright.sidecar.monitor import Monitor
from labwright.sidecar.record import RunJournal
from tests.support.lab import lab_in, make_run, move


def test_an_unclaimed_launch_is_repeated_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[str] = []
    with lab_in(tmp_path / "project") as lab:
        monkeypatch.setattr(lab.local, "launch", lambda made: launched.extend(each.run.id for each in made))
        run = make_run(lab, "a")
        run = move(lab, run, RunStatus.QUEUED, RunStatus.LAUNCHING, launched_at=rfc3339(time.time()))
        recover(lab, run)
        assert launched == []  # it may still be claimed
        recover(lab, run.evolve(launched_at=rfc3339(time.time() + 3600)))  # an hour before that time
        assert launched == [run.id]


def test_a_future_time_counts_as_long_ago() -> None:
    assert seconds_apart(time.time() + 3600) > 3500
    assert seconds_apart(time.time() - 3600) > 3500


def test_the_time_limit_of_an_orphan_ignores_clock_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monitor = object.__new__(Monitor)
    monitor.record = RunJournal(RunPaths(str(tmp_path)), "run-q7kxy2s8s4", "")
    monitor.run = {"time_limit_seconds": 60}
    monitor._started = time.monotonic() - 5
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert monitor._reason_to_end() == ""
    monitor._started = time.monotonic() - 61
    assert monitor._reason_to_end() == "time_limit"
