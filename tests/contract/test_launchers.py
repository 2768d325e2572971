"""One suite for every launcher: the same claims hold on this machine and on a Slurm node."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.local.launcher import SIDECAR
from labwright.processes import processes_of_run
from tests.conftest import stop_all
from tests.support.live_server import LiveServer
from tests.support.slurm import slurm_server
from tests.support.waiting import wait_until


@pytest.fixture(params=["local", "slurm"])
def launcher(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def server(launcher: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    project = tmp_path / "project"
    project.mkdir()
    if launcher == "slurm":
        made = slurm_server(project, request.getfixturevalue("slurm"))
    else:
        made = LiveServer(project, LABWRIGHT_GRACE_SECONDS="1", LABWRIGHT_MAX_PARALLEL="4")
    made.start()
    yield made
    stop_all(made)
    made.stop()


def started(server: LiveServer, command: str, **fields: Any) -> dict[str, Any]:
    return server.wait_for_status(server.submit(command, **fields)["id"], "running")


def until_file(server: LiveServer, name: str) -> str:
    return f"until [ -e '{server.project}/{name}' ]; do sleep 0.05; done"


def test_run_records_its_launcher_its_host_and_its_end(server: LiveServer, launcher: str) -> None:
    ended = server.wait_for_end(server.submit("echo out; echo err >&2; exit 3")["id"])
    assert (ended["launcher"], ended["status"], ended["exit_code"]) == (launcher, "failed", 3)
    assert ended["node"] and ended["started_at"] <= ended["ended_at"]
    assert (ended["slurm_job_id"] is not None) is (launcher == "slurm")
    assert server.output(ended["id"]) == "out\nerr\n"


@pytest.mark.parametrize(
    ("command", "code", "signal"), [("true", 0, None), ("kill -SEGV $$", 139, 11), ("exit 255", 255, None)]
)
def test_exit_codes_and_signals_are_those_of_the_command(
    server: LiveServer, command: str, code: int, signal: int | None
) -> None:
    ended = server.wait_for_end(server.submit(command)["id"])
    assert (ended["exit_code"], ended["signal"]) == (code, signal)
    assert ended["status"] == ("finished" if code == 0 else "failed")


def test_environment_is_the_documented_one(server: LiveServer) -> None:
    run = server.submit("env; pwd", env={"MINE": "a b", "MY_TOKEN": "hush"})
    server.wait_for_end(run["id"])
    said = dict(line.split("=", 1) for line in server.output(run["id"]).splitlines() if "=" in line)
    assert (said["LABWRIGHT_RUN_ID"], said["LABWRIGHT_ATTEMPT"]) == (run["id"], "1")
    assert said["LABWRIGHT_RUN_DIR"] == str(server.state / "runs" / run["id"])
    assert (said["PYTHONUNBUFFERED"], said["MINE"], said["MY_TOKEN"]) == ("1", "a b", "hush")
    assert said["PYTHONPATH"].startswith(str(server.state))
    assert server.output(run["id"]).rstrip().endswith(str(server.project))
    left = [path for path in (server.state / "runs" / run["id"]).rglob("*") if path.is_file()]
    assert not [path.name for path in left if b"hush" in path.read_bytes() and path.name != "output.log"]


def test_sdk_is_available_and_metrics_arrive(server: LiveServer) -> None:
    script = "import labwright; run = labwright.init(); [labwright.log({'loss': 1 / (n + 1)}) for n in range(5)]"
    run = server.submit(f'{sys.executable} -c "{script}"')
    assert server.wait_for_end(run["id"])["status"] == "finished", server.output(run["id"])
    assert server.run(run["id"])["summary"]["loss"]["last"] == 0.2


def test_stop_ends_the_whole_process_tree_with_grace(server: LiveServer) -> None:
    run = started(server, "trap 'echo bye; exit 0' TERM; (setsid sleep 1000 &); echo up; while :; do sleep 0.05; done")
    wait_until(lambda: "up" in server.output(run["id"]), "the tree to stand")
    server.post(f"/runs/{run['id']}/stop")
    ended = server.wait_for_end(run["id"])
    assert (ended["status"], ended["status_reason"]) == ("stopped", "stopped on request")
    assert "bye" in server.output(run["id"])
    assert not processes_of_run(run["id"])


def test_job_that_ignores_term_is_killed(server: LiveServer) -> None:
    run = started(server, "trap '' TERM; echo up; while :; do sleep 0.1; done")
    wait_until(lambda: "up" in server.output(run["id"]), "the trap to be set")
    server.post(f"/runs/{run['id']}/stop")
    assert server.wait_for_end(run["id"])["status"] == "stopped"
    assert not processes_of_run(run["id"])


def test_time_limit_is_exact_to_the_second(server: LiveServer) -> None:
    ended = server.wait_for_end(server.submit("sleep 1000", time_limit_seconds=1.5)["id"])
    assert (ended["status"], ended["status_reason"]) == ("failed", "time_limit")
    assert 1.4 < ended["usage"]["wall_seconds"] < 10
    (alert,) = server.get("/alerts?status=pending")
    assert (alert["run_id"], alert["rule"], alert["message"]) == (ended["id"], "exit", ended["error"])


def test_second_sidecar_of_the_same_attempt_exits(server: LiveServer) -> None:
    run = started(server, f"echo once; {until_file(server, 'go')}")
    folder = server.state / "runs" / run["id"]
    for _ in range(2):
        subprocess.run([sys.executable, "-I", "-S", str(SIDECAR), "run", str(folder)], check=True, timeout=60)
    (server.project / "go").touch()
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert server.output(run["id"]) == "once\n"


def test_restarted_server_finds_its_runs_after_a_kill(server: LiveServer) -> None:
    going = started(server, f"{until_file(server, 'go')}; exit 2")
    over = started(server, f"{until_file(server, 'over')}; exit 9")
    server.kill()
    (server.project / "over").touch()
    wait_until((server.state / "runs" / over["id"] / "exit.json").exists, "one to end meanwhile")
    server.start()
    assert server.wait_for_end(over["id"])["exit_code"] == 9
    (server.project / "go").touch()
    assert server.wait_for_end(going["id"])["exit_code"] == 2


def test_child_starts_after_its_parent(server: LiveServer) -> None:
    first = server.submit("echo 1 >> order")
    second = server.submit("echo 2 >> order", after=[first["id"]])
    assert server.wait_for_end(second["id"])["status"] == "finished"
    assert (server.project / "order").read_text() == "1\n2\n"


def test_sweep_keeps_its_own_parallel_limit(server: LiveServer) -> None:
    sweep = server.post("/sweeps/wild", {"name": "narrow", "parallel": 1})["id"]
    first, second = (server.submit(until_file(server, "go"), sweep_id=sweep, name=name)["id"] for name in "ab")
    server.wait_for_status(first, "running")
    assert server.run(second)["status"] == "queued"
    (server.project / "go").touch()
    assert server.wait_for_end(second)["launched_at"] >= server.run(first)["ended_at"]


def test_rebuilt_database_has_the_same_runs(server: LiveServer) -> None:
    run = started(server, f"{until_file(server, 'go')}; exit 8")
    server.kill()
    for name in ("labwright.db", "labwright.db-wal", "labwright.db-shm"):
        (server.state / name).unlink(missing_ok=True)
    server.start()
    (server.project / "go").touch()
    ended = server.wait_for_end(run["id"])
    assert (ended["exit_code"], ended["launcher"]) == (8, run["launcher"])


def test_sidecar_output_is_in_the_run_folder(server: LiveServer, launcher: str) -> None:
    run = server.wait_for_end(server.submit("true")["id"])
    folder = server.state / "runs" / run["id"]
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events if event["event"] in ("started", "requeued")] == ["started"]
    assert ("slurm_job_id" in events[0]) is (launcher == "slurm")
