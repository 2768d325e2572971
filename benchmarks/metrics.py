"""Points over HTTP, series read and compared, and how much room they take in the database."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from pathlib import Path

from benchmarks import loggers
from benchmarks.figure import Figure, at_least, at_most, best_rate, median_of
from benchmarks.server import connected, fresh_server, milliseconds_of, processor_seconds, submit
from labwright.client.connection import Connection
from labwright.paths import ProjectPaths
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

_ROUNDS = 7
_BATCHES = 100
_BATCH = loggers.BATCH
_LONG = 1_000_000
_COMPARED_RUNS = 10
_COMPARED_POINTS = 100_000
_SHOWN = 1000
_GETS = 10
_STEPS = 100_000
_KEYS = 10
_PATIENCE_SECONDS = 300.0


def measure() -> list[Figure]:
    with fresh_server() as server, connected(server) as connection:
        rates, microseconds = _http(server, connection)
        long = _median_milliseconds(connection, _long_series(server, connection))
        compared = _median_milliseconds(connection, _compared_runs(server, connection))
    batches = f"{_BATCHES} batches of {_BATCH} points of 10 keys a round, over one connection"
    gets = f"median of {_GETS} requests a round"
    mlflow_read = loggers.mlflow_peer("read", f"MLflow, all of {loggers.READ_POINTS:,}")
    return [
        best_rate(
            f"points a second over HTTP, batches of {_BATCH}",
            rates,
            batches,
            at_least(100_000),
            loggers.mlflow_peer("batch", "MLflow"),
        ),
        median_of("the same, processor time of the server a point", "µs", microseconds, batches, None),
        median_of(f"a series of {_LONG:,} points, read at {_SHOWN:,}", "ms", long, gets, at_most(60), mlflow_read),
        median_of(f"compare {_COMPARED_RUNS} runs × {_COMPARED_POINTS:,} points", "ms", compared, gets, at_most(150)),
        _room(),
    ]


def _http(server: LiveServer, connection: Connection) -> tuple[list[float], list[float]]:
    run_id = submit(connection, start=False)
    rates: list[float] = []
    microseconds: list[float] = []
    for number in range(_ROUNDS):
        bodies = [_batch(number * _BATCHES + batch) for batch in range(_BATCHES)]
        before, began = processor_seconds(server), time.perf_counter()
        for body in bodies:
            connection.request("POST", f"/runs/{run_id}/metrics", body)
        rates.append(_BATCHES * _BATCH / (time.perf_counter() - began))
        _wait_for_points(server, run_id, "train/metric_", 10, (number + 1) * _BATCHES * _BATCH // 10)
        microseconds.append((processor_seconds(server) - before) / (_BATCHES * _BATCH) * 1e6)
    return rates, microseconds


def _batch(number: int) -> dict[str, object]:
    """Fifty steps of ten keys, each step with its time."""
    began, steps = time.time(), range(number * _BATCH // 10, (number + 1) * _BATCH // 10)
    return {
        "points": [
            {"key": f"train/metric_{key}", "step": step, "value": random.gauss(0, 1), "time": round(began, 3)}
            for step in steps
            for key in range(10)
        ]
    }


def _wait_for_points(server: LiveServer, run_id: str, prefix: str, keys: int, count: int) -> None:
    """So many in each of these series: what is timed next must not be a series that is still short."""

    def arrived() -> bool:
        summary = server.run(run_id)["summary"]
        return all(summary.get(f"{prefix}{key}", {}).get("step") == count - 1 for key in range(keys))

    wait_until(arrived, f"{count} points of {run_id}", _PATIENCE_SECONDS)


def _long_series(server: LiveServer, connection: Connection) -> str:
    run_id = _run_with(server, connection, _LONG, 1)
    path = f"/runs/{run_id}/metrics?keys=key_0&max_points={_SHOWN}"
    (series,) = server.get(path)["series"]
    _check_shown(series["steps"], _LONG)
    assert series["count"] == _LONG and {series["min"], series["max"]} <= set(series["values"])
    return path


def _compared_runs(server: LiveServer, connection: Connection) -> str:
    runs = [_run_with(server, connection, _COMPARED_POINTS, 1) for _ in range(_COMPARED_RUNS)]
    path = f"/metrics/compare?run_ids={','.join(runs)}&key=key_0&max_points={_SHOWN}"
    compared = server.get(path)["runs"]
    assert len(compared) == _COMPARED_RUNS
    for run in compared:
        _check_shown(run["steps"], _COMPARED_POINTS)
    return path


def _check_shown(steps: list[int], count: int) -> None:
    """The whole series, from its beginning to its end, with as many points as were asked for."""
    assert 0.9 * _SHOWN <= len(steps) <= _SHOWN and steps[0] < 0.01 * count and steps[-1] > 0.99 * count, steps


def _run_with(server: LiveServer, connection: Connection, steps: int, keys: int) -> str:
    """Noise with all its digits, which no packing makes smaller; in a file as the SDK writes it, read by the server."""
    run_id = submit(connection, start=False)
    folder = Path(ProjectPaths(server.project).run(run_id).metrics)
    folder.mkdir(parents=True, exist_ok=True)
    chance, began = random.Random(steps), time.time()
    with open(folder / "sdk-1-bench.jsonl", "w") as file:
        for step in range(steps):
            numbers = {f"key_{key}": chance.gauss(0, 1) for key in range(keys)}
            file.write(json.dumps({"s": step, "t": round(began + step / 100 + chance.random() / 500, 3), "m": numbers}))
            file.write("\n")
    # A run that was not started is looked at when somebody sends points.
    one = {"points": [{"key": "nudge", "step": steps - 1, "value": 1.0}]}
    connection.request("POST", f"/runs/{run_id}/metrics", one)
    _wait_for_points(server, run_id, "key_", keys, steps)
    return run_id


def _median_milliseconds(connection: Connection, path: str) -> list[float]:
    milliseconds_of(connection, path)
    return [sorted(milliseconds_of(connection, path) for _ in range(_GETS))[_GETS // 2] for _ in range(_ROUNDS)]


def _room() -> Figure:
    """What the file grew by, with the write-ahead log folded in."""
    with fresh_server() as server, connected(server) as connection:
        empty = _size(server)
        _run_with(server, connection, _STEPS, _KEYS)
        grown = _size(server) - empty
    points = _STEPS * _KEYS
    how = f"{_STEPS:,} steps × {_KEYS} keys of noise with all its digits; the write-ahead log folded in"
    return median_of("database, bytes a point", "bytes", [grown / points], how, at_most(12))


def _size(server: LiveServer) -> int:
    path = ProjectPaths(server.project).database
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    return path.stat().st_size
