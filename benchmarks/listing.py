"""`GET /runs?limit=100` where 100,000 runs are stored: the newest, those of one status, deep in the list, and queued
ones, whose reasons are found out at each look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import mlflow
from benchmarks.figure import Figure, Target, at_most, median_of, p95_rounds
from benchmarks.server import connected, fresh_server, milliseconds_of, submit
from benchmarks.stored import MANY, filled_database
from labwright.client.connection import Connection

_ROUNDS = 5
_GETS = 100
_DEPTH = 900  # pages of 100
_QUEUED = 300


def measure() -> list[Figure]:
    target = at_most(15)
    with fresh_server(filled_database(), LABWRIGHT_MAX_PARALLEL="1") as server, connected(server) as connection:
        deep = _cursor_at(connection, _DEPTH // 10)
        with _long_queue(connection):
            queued = _figure(connection, "&status=queued", "status=queued", target)
        newest = _figure(connection, "", "newest first", target)
        filtered = _figure(connection, "&status=failed", "status=failed", target)
        far = _figure(connection, f"&cursor={deep}", f"page {_DEPTH}", target)
    peer = mlflow.peer("list", f"MLflow p95, 100 of {mlflow.RUNS}")
    return [median_of(newest.name, "ms", newest.rounds, _HOW, target, peer), filtered, far, queued]


_HOW = f"p95 of {_GETS} requests a round"


def _figure(connection: Connection, query: str, words: str, target: Target) -> Figure:
    rounds = p95_rounds(lambda: milliseconds_of(connection, f"/runs?limit=100{query}"), _ROUNDS, _GETS)
    return median_of(f"GET /runs?limit=100 at {MANY:,} runs, {words}, p95", "ms", rounds, _HOW, target)


@contextmanager
def _long_queue(connection: Connection) -> Iterator[None]:
    made = [submit(connection, "sleep 600") for _ in range(_QUEUED)]
    try:
        yield
    finally:
        for run_id in reversed(made):  # the one that runs last, else the next would start
            connection.request("POST", f"/runs/{run_id}/stop")


def _cursor_at(connection: Connection, pages: int) -> str:
    """Walked to, as a client would, in pages of a thousand."""
    cursor = ""
    for _ in range(pages):
        answer = connection.request("GET", f"/runs?limit=1000&archived=all{cursor and f'&cursor={cursor}'}")
        cursor = answer.headers["x-next-cursor"]
    return cursor
