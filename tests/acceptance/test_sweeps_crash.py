"""Sweeps survive kills, restarts and a lost database: nothing is requested twice or forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.live_server import LiveServer
from tests.support.sweeping import logs, make_sweep, runs_of, sweep_when
from tests.support.waiting import wait_until

ADAPTIVE: dict[str, Any] = {
    "base_command": logs("1 + ({x} - 2) ^ 2 + ({y} + 1) ^ 2"),
    "parameters": {"x": {"min": -5, "max": 5}, "y": {"min": -5, "max": 5}, "kind": ["a", "b"]},
    "method": "adaptive",
    "max_runs": 24,
    "parallel": 1,
    "sampling_seed": 11,
}


def configurations(server: LiveServer, sweep_id: str) -> list[str]:
    runs = sorted(runs_of(server, sweep_id), key=lambda run: run["trial"])
    return [json.dumps(run["params"]) for run in runs]


def finished(server: LiveServer, sweep_id: str) -> int:
    count: int = server.get(f"/sweeps/{sweep_id}")["progress"]["finished"]
    return count


def test_repeatedly_killed_server_requests_each_configuration_once(make_server: Callable[..., LiveServer]) -> None:
    calm = make_server("calm").start()
    undisturbed = make_sweep(calm, **ADAPTIVE)["id"]
    sweep_when(calm, undisturbed, "completed")

    server = make_server("killed").start()
    sweep = make_sweep(server, **ADAPTIVE)["id"]
    for count in (3, 9, 12, 17):
        wait_until(lambda count=count: finished(server, sweep) >= count, f"{count} to finish")  # type: ignore[misc]
        server.restart()
    sweep_when(server, sweep, "completed")
    assert configurations(server, sweep) == configurations(calm, undisturbed)
    assert len(set(configurations(server, sweep))) == 24


def test_lost_database_restores_the_sweep_and_its_missing_runs(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="1").start()
    command = f"until [ -e '{server.project}/go' ] || [ {{a}} -lt 3 ]; do sleep 0.02; done; {logs('{a}')}"
    grid = make_sweep(server, base_command=command, parameters={"a": list(range(8))}, seeds=2)["id"]
    held = make_sweep(server, base_command="true", parameters={"a": [1, 2]}, auto_start=False)["id"]
    wait_until(lambda: finished(server, grid) >= 6, "some to finish")
    before = {run["id"] for run in runs_of(server, grid)}
    server.kill()
    for path in server.state.glob("labwright.db*"):
        path.unlink()
    server.start()
    assert {run["id"] for run in runs_of(server, grid)} == before
    assert server.get(f"/sweeps/{grid}")["status"] == "running"
    assert server.get(f"/sweeps/{held}")["progress"]["ready"] == 2
    (server.project / "go").touch()
    done = sweep_when(server, grid, "completed")
    assert (done["progress"]["finished"], done["best"]["params"]) == (16, {"a": 0})
    assert server.get(f"/sweeps/{held}")["status"] == "draft"


def test_adaptive_sweep_continues_after_its_database_was_lost(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    sweep = make_sweep(server, **ADAPTIVE)["id"]
    wait_until(lambda: finished(server, sweep) >= 12, "some to finish")
    server.kill()
    before = [json.loads(line)["run"] for line in (server.state / "journal.jsonl").read_text().splitlines()]
    for path in server.state.glob("labwright.db*"):
        path.unlink()
    server.start()
    sweep_when(server, sweep, "completed")
    after = runs_of(server, sweep)
    assert {run["id"] for run in before} <= {run["id"] for run in after}
    assert sorted(run["trial"] for run in after) == list(range(24))


def test_secrets_of_a_sweep_survive_a_restart(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    body = {"base_command": ": {a}; echo $HF_TOKEN", "parameters": {"a": [1]}, "env": {"HF_TOKEN": "s3cret"}}
    made = make_sweep(server, **body, metric=None, auto_start=False)["id"]
    server.restart()
    server.post(f"/sweeps/{made}/start")
    sweep_when(server, made, "completed")
    assert server.output(runs_of(server, made)[0]["id"]) == "s3cret\n"


def test_budget_survives_a_kill(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="2").start()
    made = make_sweep(server, base_command=logs("{a}"), parameters={"a": list(range(30))}, budget={"runs": 12})["id"]
    wait_until(lambda: finished(server, made) >= 3, "some to finish")
    server.restart()
    sweep_when(server, made, "paused")
    wait_until(lambda: finished(server, made) == 12, "twelve to finish")
    assert server.get(f"/sweeps/{made}")["progress"]["ready"] == 18
