"""A job that Slurm starts again waits for an attempt that may still live on another node."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from labwright.files import write_json
from labwright.paths import RunPaths
from labwright.processes import identity
from labwright.sidecar import slurm
from labwright.sidecar.slurm import attempt_of, is_to_run

ELSEWHERE = {"pid": 1, "start_time": 1, "boot_id": "another machine", "host": "another"}


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPaths:
    monkeypatch.setattr(slurm, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(slurm, "_SILENCE_SECONDS", 0.3)
    return RunPaths(tmp_path)


def claim(paths: RunPaths, attempt: int, owner: dict[str, Any]) -> None:
    Path(paths.claim(attempt)).write_text(json.dumps(owner))


def ended(paths: RunPaths, attempt: int, reason: str, by: int | None = None) -> None:
    write_json(paths.exit, {"attempt": attempt, "reason": reason, "signal": by})  # in one write, as a supervisor does


def test_the_first_attempt_does_not_wait(paths: RunPaths) -> None:
    assert is_to_run(paths, "run-x", 1)


def test_an_attempt_that_never_started_is_not_waited_for(paths: RunPaths) -> None:
    assert is_to_run(paths, "run-x", 2)


def test_an_interrupted_attempt_is_repeated(paths: RunPaths) -> None:
    claim(paths, 1, ELSEWHERE)
    ended(paths, 1, "terminated")
    assert is_to_run(paths, "run-x", 2)


def test_a_killed_attempt_is_repeated(paths: RunPaths) -> None:
    """Slurm killed it because it did not end in time; otherwise it would not start it again."""
    claim(paths, 1, ELSEWHERE)
    ended(paths, 1, "exit_code", by=signal.SIGKILL)
    assert is_to_run(paths, "run-x", 2)


def test_an_attempt_that_ended_normally_is_not_repeated(paths: RunPaths) -> None:
    claim(paths, 1, ELSEWHERE)
    ended(paths, 1, "exit_code")
    assert not is_to_run(paths, "run-x", 2)


def test_the_end_of_an_older_attempt_does_not_count(paths: RunPaths) -> None:
    claim(paths, 1, ELSEWHERE)
    claim(paths, 2, {**identity(os.getpid()).to_dict(), "start_time": 1})
    ended(paths, 1, "terminated")
    assert is_to_run(paths, "run-x", 3), "its process is dead, here"


def test_a_silent_attempt_is_given_up(paths: RunPaths) -> None:
    claim(paths, 1, ELSEWHERE)
    Path(paths.heartbeat).touch()
    began = time.monotonic()
    assert is_to_run(paths, "run-x", 2)
    assert time.monotonic() - began >= 0.3


def test_a_live_attempt_is_waited_for_and_its_end_counts(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "_SILENCE_SECONDS", 2.0)
    claim(paths, 1, ELSEWHERE)
    beats = 0

    def live() -> None:
        nonlocal beats
        for beats in range(1, 61):
            os.close(os.open(paths.heartbeat, os.O_CREAT | os.O_WRONLY))
            os.utime(paths.heartbeat, (beats, time.time() + beats))
            time.sleep(0.05)
        ended(paths, 1, "")

    former = threading.Thread(target=live)
    former.start()
    assert not is_to_run(paths, "run-x", 2)
    former.join()
    assert beats == 60


def test_a_job_that_slurm_restarted_silently_is_the_next_attempt(paths: RunPaths) -> None:
    task = {"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "3"}
    claim(paths, 1, {**ELSEWHERE, "slurm_job_id": "10_3"})
    assert attempt_of(paths, {"attempt": 1}, task) == 2
    claim(paths, 2, {**ELSEWHERE, "slurm_job_id": "10_3"})
    assert attempt_of(paths, {"attempt": 1}, {**task, "SLURM_RESTART_COUNT": "1"}) == 3


def test_a_second_job_of_the_same_run_finds_its_attempt_claimed(paths: RunPaths) -> None:
    claim(paths, 1, {**ELSEWHERE, "slurm_job_id": "11"})
    assert attempt_of(paths, {"attempt": 1}, {"SLURM_JOB_ID": "12"}) == 1


def test_an_attempt_with_a_cut_off_claim_is_waited_for_and_given_up(paths: RunPaths) -> None:
    Path(paths.claim(1)).touch()
    assert attempt_of(paths, {"attempt": 1}, {"SLURM_JOB_ID": "12", "SLURM_RESTART_COUNT": "1"}) == 2
    assert attempt_of(paths, {"attempt": 1}, {"SLURM_JOB_ID": "12"}) == 1
    assert is_to_run(paths, "run-x", 2)
