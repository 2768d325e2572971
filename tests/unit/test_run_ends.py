"""How runs end without a sidecar's report, and that a rebuilt database shows the same ends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.database.rebuild import rebuild
from labwright.compute.engine import RunEngine
from labwright.compute.lab import Lab
from labwright.compute.local.recover import recover
from labwright.compute.runs.folder import make_run_folder
from labwright.compute.runs.ingest import ingest
from labwright.domain.clock import epoch_seconds, now, rfc3339
from labwright.domain.run import SLURM, Run, RunStatus
from labwright.processes import boot_id
from labwright.store import alerts, runs
from tests.support.lab import lab_in, make_run, move
from tests.support.waiting import wait_until

SHOWN = ("status", "status_reason", "error", "ended_at", "started_at", "exit_code", "signal", "usage")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as lab:
        yield lab


def orphan(lab: Lab, *events: dict[str, Any], **fields: Any) -> Run:
    """A run without supervisor and job. `events` are the reports its sidecar had written."""
    run = make_run(lab, "orphan", **fields)
    run = move(lab, run, RunStatus.QUEUED, RunStatus.LAUNCHING, run_dir=lab.paths.run(run.id).dir)
    make_run_folder(lab, run)
    paths = lab.paths.run(run.id)
    nobody = {"pid": 1 << 23, "start_time": 1, "boot_id": boot_id(), "host": "here"}
    Path(paths.claim(1)).write_text(json.dumps(nobody))
    started = {"event": "started", "time": time.time(), "job": nobody, "gpu_uuids": []}
    Path(paths.events).write_text("".join(f"{json.dumps(event)}\n" for event in (started, *events)))
    ingest(lab, run.id)
    return found(lab, run)


def found(lab: Lab, run: Run) -> Run:
    return runs.get(lab.db.reader(), run.id)


def stopping(why: str) -> dict[str, Any]:
    return {"event": "stopping", "time": time.time(), "why": why}


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        ([], RunStatus.LOST, "sidecar_lost"),
        ([stopping("time_limit")], RunStatus.FAILED, "time_limit"),
        ([stopping("stop")], RunStatus.STOPPED, "stopped on request"),
    ],
)
def test_dead_orphan_ends_as_its_sidecar_intended(
    lab: Lab, said: list[dict[str, Any]], status: RunStatus, reason: str
) -> None:
    run = orphan(lab, *said, time_limit_seconds=60)
    recover(lab, run)
    ended = found(lab, run)
    assert (ended.status, ended.status_reason) == (status, reason)
    assert bool(told(lab, run)) is (status is not RunStatus.STOPPED), "whoever did not ask for it is told"


@pytest.mark.parametrize("said", [[], [stopping("time_limit")], [stopping("stop")]])
def test_rebuilt_database_shows_the_same_end_and_alerts(tmp_path: Path, said: list[dict[str, Any]]) -> None:
    alert = {"event": "alert", "rule": "stall", "message": "quiet", "severity": "warning", "choices": ["ignore"]}
    with lab_in(tmp_path / "project") as lab:
        run = orphan(lab, {**alert, "time": time.time() - 5}, *said, time_limit_seconds=60)
        recover(lab, run)
        ended, raised = found(lab, run), told(lab, run)
    lab.paths.database.unlink()
    rebuild(lab.paths)
    with lab_in(tmp_path / "project") as lab:
        ingest(lab, run.id)
        assert shown(found(lab, run)) == shown(ended)
        assert told(lab, run) == raised and raised


def shown(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in SHOWN}


def told(lab: Lab, run: Run) -> list[tuple[str, str]]:
    return [(alert.id, alert.created_at) for alert in alerts.pending_of_run(lab.db.reader(), run.id)]


def test_late_evidence_overrides_a_run_that_was_given_up(lab: Lab) -> None:
    run = orphan(lab)
    recover(lab, run)
    facts = json.loads(Path(lab.paths.run(run.id).end).read_text())
    Path(lab.paths.run(run.id).exit).write_text(json.dumps({**facts, "status": "finished", "exit_code": 0}))
    ingest(lab, run.id)
    assert found(lab, run).status is RunStatus.FINISHED


def test_run_whose_metrics_are_still_read_says_that_it_has_ended(lab: Lab) -> None:
    run = orphan(lab)
    paths = lab.paths.run(run.id)
    facts = {"attempt": 1, "status": "finished", "reason": "", "exit_code": 0, "signal": None, "error": None}
    Path(paths.exit).write_text(json.dumps({**facts, "ended_at": time.time(), "usage": {}}))
    Path(paths.metrics).mkdir(exist_ok=True)
    lines = (f'{{"s":{step},"t":{time.time()},"m":{{"loss":0.5}}}}\n' for step in range(2000))
    Path(paths.metrics, "sdk-1-a.jsonl").write_text("".join(lines))
    engine = RunEngine(lab)
    engine.tick()
    assert found(lab, run).status_reason.startswith("it has ended")
    engine.start()
    wait_until(lambda: found(lab, run).status is RunStatus.FINISHED, "the end")
    engine.close()
    assert found(lab, run).status_reason == "" and found(lab, run).summary["loss"]["step"] == 1999


def test_end_of_a_given_up_slurm_run_is_noticed_later(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its node may have been cut off for a while; only the file shows the end."""
    monkeypatch.setattr("labwright.compute.engine._LOST_CHECK_SECONDS", 0.0)
    run = move(lab, orphan(lab), RunStatus.LOST, launcher=SLURM)
    engine = RunEngine(lab)
    engine.tick()
    assert found(lab, run).status is RunStatus.LOST
    facts = {"attempt": 1, "status": "finished", "reason": "", "exit_code": 0, "signal": None, "error": None}
    Path(lab.paths.run(run.id).exit).write_text(json.dumps({**facts, "ended_at": time.time(), "usage": {}}))
    engine.tick()
    assert (found(lab, run).status, found(lab, run).exit_code) == (RunStatus.FINISHED, 0)


@pytest.mark.parametrize("after_a_kill", [False, True])
def test_run_whose_code_is_missing_fails_with_that_reason(lab: Lab, after_a_kill: bool) -> None:
    run = make_run(lab, "gone", use_snapshot=True)
    with lab.db.transaction() as tx:
        run = runs.change(tx, run, replace(run, snapshot={"hash": "0" * 64}), "system")
    run = move(lab, run, RunStatus.QUEUED, queued_at=now())
    if after_a_kill:
        recover(lab, move(lab, run, RunStatus.LAUNCHING), at_start=True)
    else:
        RunEngine(lab).tick()
    failed = found(lab, run)
    assert (failed.status, failed.status_reason) == (RunStatus.FAILED, "could_not_start")
    assert "no snapshot" in str(failed.error)


def test_event_with_an_impossible_time_does_no_harm(lab: Lab) -> None:
    run = orphan(lab, {"event": "alert", "time": 1e300, "rule": "r", "message": "m", "severity": "info", "choices": []})
    assert found(lab, run).status is RunStatus.RUNNING


def test_time_survives_reading_and_writing() -> None:
    for millisecond in range(1000):
        text = f"2026-11-16T10:00:00.{millisecond:03d}Z"
        assert rfc3339(epoch_seconds(text)) == text
