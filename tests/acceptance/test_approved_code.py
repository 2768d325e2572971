"""Only the approved code runs, even if a run starts much later. A run that finds other code does not start."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from labwright.sidecar.approved_code import LOADING_SECONDS
from tests.conftest import stop_all
from tests.support.live_server import LiveServer
from tests.support.planning import Json, approved, compiled, execute, executed, planning_server
from tests.support.waiting import wait_until

WAITS = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    """A server whose script waits for a file. Two runs are active at a time, so the plan's third run stays queued."""
    server = planning_server(tmp_path)
    script = server.project / "fit.py"
    script.write_text(WAITS + script.read_text())
    yield server.start()
    stop_all(server)
    server.stop()


def test_queued_run_does_not_start_after_the_code_changed(server: LiveServer) -> None:
    plan_id, script = approved(server, compiled(server)["id"])["id"], server.project / "fit.py"
    execute(server, plan_id)
    wait_until(lambda: _statuses(server)["running"] == 2, "two runs to be going")
    as_approved = script.read_text()
    _wait_until_loaded(server)
    script.write_text(as_approved + "\n# another thought\n")
    (server.project / "go").touch()
    plan = executed(server, plan_id)
    assert plan["status"] == "failed" and "fit.py changed since the plan was approved" in plan["status_reason"]
    assert _statuses(server) == {"finished": 2, "failed": 1}
    (refused,) = [run for run in server.all_runs() if run["status"] == "failed"]
    assert (refused["status_reason"], refused["started_at"]) == ("code_changed", None)

    assert server.call("POST", f"/plans/{plan_id}/execute").status == 409
    script.write_text(as_approved)
    execute(server, plan_id)
    plan = executed(server, plan_id)
    assert plan["status"] == "completed", plan["status_reason"]
    assert Counter(run["params"]["degree"] for run in _finished(server)) == {1: 1, 3: 1, 5: 1}, "nothing is repeated"


def test_run_whose_code_changed_during_its_start_does_not_count(server: LiveServer) -> None:
    """The run may have read the old or the new code."""
    plan_id, script = approved(server, compiled(server)["id"])["id"], server.project / "fit.py"
    as_approved = script.read_text()
    execute(server, plan_id)
    wait_until(lambda: _statuses(server)["running"] == 2, "two runs to be going")
    script.write_text(as_approved + "\n# another thought\n")
    (server.project / "go").touch()
    assert executed(server, plan_id)["status"] == "failed"
    assert _statuses(server) == {"failed": 3}
    event_data = [run["error"] for run in server.all_runs()]
    assert len([words for words in event_data if words.startswith("fit.py changed while the run started")]) == 2, (
        event_data
    )


def _wait_until_loaded(server: LiveServer) -> None:
    """Wait until the runs have loaded their code, so that a later edit does not affect them."""
    began = [datetime.fromisoformat(run["started_at"]).timestamp() for run in server.all_runs() if run["started_at"]]
    wait_until(lambda: time.time() > max(began) + LOADING_SECONDS + 1, "the runs to have read their code", 30)


def _finished(server: LiveServer) -> list[Json]:
    return [run for run in server.all_runs() if run["status"] == "finished" and run["sweep_id"]]


def _statuses(server: LiveServer) -> Counter[str]:
    return Counter(run["status"] for run in server.all_runs())


def test_links_in_the_project_count_as_their_targets(tmp_path: Path) -> None:
    server = planning_server(tmp_path)
    shared, data = tmp_path / "shared", tmp_path / "data"
    for folder in (shared, data):
        folder.mkdir()
        (server.project / folder.name).symlink_to(folder)
    (shared / "layers.py").write_text("WIDTH = 1\n")
    (data / "digits.csv").write_text("1,2\n")
    (server.project / "models").mkdir()
    (server.project / "models" / "small.py").write_text("SIZE = 1\n")
    (server.project / "model.py").symlink_to("models/small.py")
    (server.project / "models" / "large.py").write_text("SIZE = 2\n")
    server.start()
    try:
        plan_id = approved(server, compiled(server)["id"])["id"]
        (data / "digits.csv").write_text("1,2,3\n")
        (shared / "layers.py").write_text("WIDTH = 2\n")
        (server.project / "model.py").unlink()
        (server.project / "model.py").symlink_to("models/large.py")
        answer = server.call("POST", f"/plans/{plan_id}/execute")
        event_data = answer.json["error"]["message"]
        assert event_data.endswith(
            "approved: the project's model.py changed; the project's shared/layers.py changed."
        ), event_data
    finally:
        stop_all(server)
        server.stop()
