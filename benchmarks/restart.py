"""A server that was killed with -9 comes back: how long until the API shows how every run ended meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.figure import Figure, at_most, median_of
from benchmarks.server import connected, fresh_server, submit
from benchmarks.stored import MANY, filled_database
from labwright.client.connection import Connection
from labwright.paths import ProjectPaths
from tests.support.live_server import ENDED, LiveServer
from tests.support.waiting import wait_until

_ROUNDS = 3
_RUNS = 100
_PATIENCE_SECONDS = 120.0


def measure() -> list[Figure]:
    ended = [_seconds_until_shown() for _ in range(_ROUNDS)]
    how = f"{_RUNS} runs end while no server is up; from its start until GET /runs shows the last exit code"
    with fresh_server(filled_database()) as full:
        starts = [_seconds_to_come_up(full) for _ in range(_ROUNDS)]
    return [
        median_of("restart after a kill, all ends shown", "s", ended, how, at_most(2.0)),
        median_of(f"restart at {MANY:,} runs, first answer", "s", starts, "killed with -9 before", at_most(2.0)),
    ]


def _seconds_until_shown() -> float:
    with fresh_server(LABWRIGHT_MAX_PARALLEL=str(_RUNS)) as server:
        gate = server.project / "gate"
        with connected(server) as connection:
            made = [submit(connection, f"until [ -e '{gate}' ]; do sleep 0.2; done; exit 3") for _ in range(_RUNS)]
            wait_until(lambda: _statuses(connection) == {"running"}, "all to run", _PATIENCE_SECONDS)
        server.kill()
        gate.touch()
        paths = ProjectPaths(server.project)
        exits = [Path(paths.run(run_id).exit) for run_id in made]
        wait_until(lambda: all(path.exists() for path in exits), "all to end", _PATIENCE_SECONDS)
        began = time.perf_counter()
        server.start(cold=True)
        with connected(server) as connection:
            wait_until(lambda: _statuses(connection) <= ENDED, "all ends to be shown", _PATIENCE_SECONDS)
        return time.perf_counter() - began


def _statuses(connection: Connection) -> set[str]:
    runs = connection.request("GET", "/runs", query={"limit": 1000}).json
    assert all(run["exit_code"] == 3 for run in runs if run["status"] in ENDED)
    return {run["status"] for run in runs}


def _seconds_to_come_up(server: LiveServer) -> float:
    server.kill()
    began = time.perf_counter()
    server.start(cold=True)
    with connected(server) as connection:
        assert len(connection.request("GET", "/runs", query={"limit": 100}).json) == 100
    return time.perf_counter() - began
