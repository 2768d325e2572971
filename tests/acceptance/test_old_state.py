"""A state folder of an earlier version opens: everything can be read, and its work continues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_server import ENDED, LiveServer
from tests.support.old_state import start_sidecar, unpack
from tests.support.waiting import wait_until

VERSIONS = ["0.1.0"]
STABLE = ("name", "command", "status", "exit_code", "params", "seed", "tags", "notes", "sweep_id", "plan_id", "summary")
Json = dict[str, Any]


@pytest.fixture(params=VERSIONS)
def facts(request: pytest.FixtureRequest, tmp_path: Path) -> Json:
    return unpack(request.param, tmp_path)


@pytest.fixture
def old(facts: Json, make_server: Callable[..., LiveServer]) -> LiveServer:
    return make_server("project", LABWRIGHT_MAX_PARALLEL="16")


def test_runs_sweeps_and_metrics_read_as_before(facts: Json, old: LiveServer) -> None:
    old.start()
    runs = {run["id"]: run for run in old.all_runs()}
    assert runs.keys() >= facts["runs"].keys()
    for run_id, before in facts["runs"].items():
        if before["status"] in ENDED:
            assert {name: runs[run_id][name] for name in STABLE} == {name: before[name] for name in STABLE}
    for run_id, before in facts["metrics"].items():
        assert old.get(f"/runs/{run_id}/metrics") == before
    for sweep_id, before in facts["sweeps"].items():
        found = old.get(f"/sweeps/{sweep_id}")
        assert (found["name"], found["method"], found["metric"]) == (before["name"], before["method"], before["metric"])
        assert found["best"] == before["best"] or before["status"] != "completed"


def test_plans_keep_status_approval_and_report(facts: Json, old: LiveServer) -> None:
    old.start()
    named = facts["named"]
    for name in ("draft", "completed", "approved"):
        found, before = old.get(f"/plans/{named[name]}"), facts["plans"][named[name]]
        assert (found["status"], found["title"], found["goal"]) == (before["status"], before["title"], before["goal"])
        if before["planning"]:
            assert found["planning"]["approval"] == before["planning"]["approval"]
    report = old.get(f"/plans/{named['completed']}/workspace/files/results/report.md")
    assert "fragile.py" in report["content"]


def test_executing_plan_and_wild_loop_come_to_an_end(facts: Json, old: LiveServer) -> None:
    (old.project / "hold").unlink()
    old.start()
    plan, loop = facts["named"]["executing"], facts["named"]["loop"]
    wait_until(lambda: old.get(f"/plans/{plan}")["status"] in ("completed", "failed"), "the plan to end", 120)
    wait_until(lambda: old.get(f"/wild/{loop}")["status"] not in ("running", "waiting"), "the loop to end", 120)
    assert old.get(f"/wild/{loop}")["best"]["n"] >= 1


def test_conversations_open_and_continue(facts: Json, old: LiveServer) -> None:
    old.start()
    named = facts["named"]
    for session_id in (named["talk"], named["plan_talk"]):
        before = facts["sessions"][session_id]
        assert old.get(f"/sessions/{session_id}")["title"] == before["title"]
        kinds = {piece["kind"] for piece in old.get(f"/sessions/{session_id}/pieces")}
        assert kinds >= {"user", "message", "call", "result"}
    old.say(named["plan_talk"], "what failed?")


def test_sidecar_of_the_earlier_version_is_followed_to_its_end(facts: Json, old: LiveServer, tmp_path: Path) -> None:
    run_id = facts["named"]["launching"]
    with start_sidecar(tmp_path, run_id) as sidecar:
        wait_until(lambda: "begun" in old.output(run_id), "the job to start")
        old.start()
        assert old.wait_for_status(run_id, "running")["exit_code"] is None
        (old.project / "hold").unlink()
        ended = old.wait_for_end(run_id)
        sidecar.wait(timeout=60)
    assert (ended["status"], ended["exit_code"]) == ("failed", 3)
    assert old.output(run_id).split() == ["begun", "over"]
