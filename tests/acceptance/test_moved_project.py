"""A project is moved, copied or missing."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.client.address import read_server
from labwright.domain.errors import Invalid
from labwright.paths import ProjectPaths
from labwright.server.opening import prepare_state
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until


def test_moved_project_finds_its_runs_at_the_new_place(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    run = server.wait_for_end(server.submit("echo here")["id"])
    server.stop()
    moved = server.project.with_name("moved")
    server.project.rename(moved)
    server = LiveServer(moved).start()
    try:
        assert server.run(run["id"])["run_dir"] == str(moved / ".labwright" / "runs" / run["id"])
        assert server.output(run["id"]) == "here\n"
    finally:
        server.stop()


@pytest.mark.parametrize("tty", [False, True])
def test_run_active_during_a_move_has_its_true_result(
    make_server: Callable[..., LiveServer], tmp_path: Path, tty: bool
) -> None:
    server = make_server().start()
    run = server.submit(f"echo first; until [ -e '{tmp_path}/go' ]; do sleep 0.02; done; echo last; exit 5", tty=tty)[
        "id"
    ]
    wait_until((server.state / "runs" / run / "heartbeat").exists, "it to be watched")
    server.stop()
    moved = server.project.with_name("moved")
    server.project.rename(moved)
    server = LiveServer(moved).start()
    try:
        (tmp_path / "go").touch()
        ended = server.wait_for_end(run)
        assert (ended["status"], ended["exit_code"]) == ("failed", 5)
        assert server.output(run).split() == ["first", "last"]
    finally:
        server.stop()


def test_server_whose_project_was_moved_away_reports_it(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    moved = server.project.with_name("moved")
    token = server.token
    server.project.rename(moved)
    refused = server.call("POST", "/sweeps/wild", {"name": "lr", "goal": "which?"}, token=token)
    moved.rename(server.project)
    assert (refused.status, refused.json["error"]["code"]) == (507, "storage")
    assert f"no longer at {server.project}" in refused.json["error"]["message"]
    assert server.wait_for_end(server.submit("true")["id"])["status"] == "finished"


def test_runs_of_a_moved_project_run_at_the_new_place(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    (server.project / "sub").mkdir()
    ended = server.wait_for_end(server.submit("pwd", workdir=str(server.project / "sub"))["id"])
    ready = server.post("/runs", {"command": "pwd"})
    server.stop()
    moved = server.project.with_name("moved")
    server.project.rename(moved)
    server = LiveServer(moved).start()
    try:
        server.post(f"/runs/{ready['id']}/start")
        again = server.post(f"/runs/{ended['id']}/rerun", {"auto_start": True})
        assert server.wait_for_end(ready["id"])["status"] == server.wait_for_end(again["id"])["status"] == "finished"
        assert (server.output(ready["id"]), server.output(again["id"])) == (f"{moved}\n", f"{moved / 'sub'}\n")
    finally:
        server.stop()


def test_copy_of_a_project_leaves_runs_of_the_original_alone(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    going = server.submit("touch began; until [ -e go ]; do sleep 0.1; done; exit 5")
    server.wait_for_status(going["id"], "running")
    wait_until((server.project / "began").exists)
    queued = server.submit("echo once >> count")
    copied = server.project.with_name("copied")
    subprocess.run(["cp", "-a", server.project, copied], check=True)
    assert read_server(ProjectPaths(server.project)) is not None
    assert read_server(ProjectPaths(copied)) is None
    copy = LiveServer(copied).start()
    try:
        seen = copy.wait_for_end(going["id"])
        assert (seen["status"], seen["status_reason"]) == ("lost", "copied")
        assert copy.wait_for_end(queued["id"])["status_reason"] == "copied"
        (server.project / "go").touch()
        assert server.wait_for_end(going["id"])["exit_code"] == 5
        assert server.wait_for_end(queued["id"])["status"] == "finished"
        assert (server.project / "count").read_text() == "once\n" and not (copied / "count").exists()
    finally:
        copy.stop()


def test_foreign_folder_at_the_old_place_does_not_stop_the_start(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    run = server.wait_for_end(server.submit("echo here")["id"])
    server.stop()
    with sqlite3.connect(server.state / "labwright.db") as database:
        database.execute("UPDATE runs SET record = json_set(record, '$.run_dir', '/r')")
    server.start()
    assert server.run(run["id"])["run_dir"] == run["run_dir"]


def test_missing_project_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="does not exist"):
        prepare_state(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
