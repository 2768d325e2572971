"""`log()` inside a real run: what a call costs, how many points a second are safe, and how soon a client sees them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import loggers
from benchmarks.figure import Figure, at_least, at_most, best_rate, median_of, p95
from benchmarks.server import connected, fresh_server
from labwright.client.connection import Connection
from labwright.client.follow import frames
from tests.support.live_server import LiveServer

_ROUNDS = 5
_CALLS = 50_000
_STEPS = 100_000
_KEYS = 10
_RUNS = 20
_SEEN_ROUNDS = 3
_SEEN_SECONDS = 10.0
_PATIENCE_SECONDS = 120.0

_CALL_COST = """
import json, sys, time
import labwright
clock, log, count, times = time.perf_counter_ns, labwright.log, int(sys.argv[1]), []
labwright.init()
for step in range(count):
    began = clock()
    log({"loss": step * 0.37, "acc": step * 0.11}, step=step)
    times.append(clock() - began)
times.sort()
print(json.dumps([times[count // 2] / 1e3, times[count * 99 // 100] / 1e3]))
"""
_RATE = """
import json, random, sys, time
import labwright
count, keys = int(sys.argv[1]), [f"train/metric_{number}" for number in range(int(sys.argv[2]))]
labwright.init()
rows = [{key: random.gauss(0, 1) for key in keys} for _ in range(1000)]
began, wall = time.perf_counter(), time.time()
for step in range(count):
    labwright.log(rows[step % 1000], step=step)
labwright.finish()
print(json.dumps([count * len(keys) / (time.perf_counter() - began), wall]))
"""
_SLOW = """
import time
import labwright
labwright.init()
for step in range(100_000):
    labwright.log({"sent": time.time(), "loss": 1 / (1 + step)}, step=step)
    time.sleep(0.05)
"""


def measure() -> list[Figure]:
    with fresh_server() as server:
        _answer(server, _CALL_COST, 1000)
        costs = [_answer(server, _CALL_COST, _CALLS) for _ in range(_ROUNDS)]
        rates = [_rates(server) for _ in range(_ROUNDS)]
    with fresh_server(LABWRIGHT_MAX_PARALLEL=str(_RUNS)) as server:
        seen = _seen_after(server)
    how = f"{_CALLS:,} calls of 2 keys a round, in a run, while the server reads along"
    both = f"{_STEPS:,} steps × {_KEYS} keys a round"
    return [
        median_of("log(), p50", "µs", [cost[0] for cost in costs], how, at_most(5), *loggers.peers("p50")),
        median_of("log(), p99", "µs", [cost[1] for cost in costs], how, at_most(50), *loggers.peers("p99")),
        best_rate(
            "points a second from one process, durable",
            [rate[0] for rate in rates],
            f"{both}; safe from a kill of anything",
            at_least(300_000),
            *loggers.peers("rate"),
        ),
        best_rate("the same, until all are in the database", [rate[1] for rate in rates], both, None),
        median_of(
            f"log() → seen by a client of the stream, {_RUNS} runs logging, p95",
            "ms",
            seen,
            f"p95 of {_SEEN_SECONDS:.0f} s a round, each run logs twenty times a second; told by the stream, then read",
            at_most(500),
        ),
    ]


def _answer(server: LiveServer, script: str, *arguments: int) -> list[float]:
    """What a script, run as a run, printed as its last line."""
    run_id = server.wait_for_end(_start(server, script, *arguments), _PATIENCE_SECONDS)["id"]
    log = (server.state / "runs" / run_id / "output.log").read_text()
    answer: list[float] = json.loads(log.splitlines()[-1])
    return answer


def _start(server: LiveServer, script: str, *arguments: int) -> str:
    path = Path(server.project) / f"script-{abs(hash(script))}.py"
    if not path.exists():  # a run that is just starting reads it
        path.write_text(script)
    words = " ".join(map(str, arguments))
    return str(server.submit(f"{sys.executable} {path.name} {words}")["id"])


def _rates(server: LiveServer) -> tuple[float, float]:
    """Into the file; and into the database, which has everything when the end of the run is told."""
    rate, began = _answer(server, _RATE, _STEPS, _KEYS)
    return rate, _STEPS * _KEYS / (time.time() - began)


def _seen_after(server: LiveServer) -> list[float]:
    """Milliseconds from a call of `log()` until its point was read by a client whom the stream told of it."""
    runs = [_start(server, _SLOW) for _ in range(_RUNS)]
    try:
        for run_id in runs:
            server.wait_for_status(run_id, "running", timeout=_PATIENCE_SECONDS)
        with connected(server) as connection:
            return [_watch(connection, dict.fromkeys(runs, -1)) for _ in range(_SEEN_ROUNDS)]
    finally:
        for run_id in runs:
            server.call("POST", f"/runs/{run_id}/stop")
        for run_id in runs:
            server.wait_for_end(run_id, _PATIENCE_SECONDS)


def _watch(connection: Connection, newest: dict[str, int]) -> float:
    times: list[float] = []
    with connection.stream("/events/stream", {"topics": "hints"}, lambda: _PATIENCE_SECONDS) as lines:
        end = time.monotonic() + _SEEN_SECONDS
        for frame in frames(lines):
            if time.monotonic() > end:
                return p95(times)
            if frame.event == "hint" and frame.data["topic"] == "metrics":
                times += _delays(connection, frame.data["run_id"], newest)
    raise AssertionError("the stream ended")


def _delays(connection: Connection, run_id: str, newest: dict[str, int]) -> list[float]:
    """Of the points not read before; the first look at a run only tells where it is."""
    answer: dict[str, Any] = connection.request("GET", f"/runs/{run_id}/metrics?keys=sent&max_points=100000").json
    now = time.time()
    if not answer["series"]:
        return []
    series = answer["series"][0]
    known, newest[run_id] = newest[run_id], series["last_step"]
    pairs = zip(series["steps"], series["values"], strict=True)
    return [(now - sent) * 1e3 for step, sent in pairs if step > known >= 0]
