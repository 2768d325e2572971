"""`POST /runs`, one after the other over one connection: at an empty database, and at 100,000 stored runs."""

from __future__ import annotations

import time

from benchmarks import mlflow
from benchmarks.figure import Figure, at_least, at_most, best_rate, median_of
from benchmarks.server import connected, fresh_server, processor_seconds, submit
from benchmarks.stored import MANY, filled_database
from labwright.client.connection import Connection

_ROUNDS = 7
_POSTS = 400


def measure() -> list[Figure]:
    empty, full, milliseconds = _interleaved_rates()
    slowdowns = [ours / theirs for ours, theirs in zip(empty, full, strict=True)]
    how = f"{_POSTS} posts a round, not started"
    peer = mlflow.peer("create", "MLflow, same client")
    return [
        best_rate("POST /runs, empty database", empty, how, at_least(600), peer),
        median_of("POST /runs, processor time of the server", "ms", milliseconds, how, None),
        best_rate(f"POST /runs, {MANY:,} runs stored", full, how, None),
        median_of(f"slowdown of POST /runs at {MANY:,} runs", "×", slowdowns, "empty and full in turns", at_most(1.3)),
    ]


def _interleaved_rates() -> tuple[list[float], list[float], list[float]]:
    """Rounds in turns, so that other load on the machine weighs on both alike; and what one post costs the server."""
    at_empty: list[float] = []
    at_full: list[float] = []
    milliseconds: list[float] = []
    with (
        fresh_server() as empty,
        fresh_server(filled_database()) as full,
        connected(empty) as to_empty,
        connected(full) as to_full,
    ):
        for connection in (to_empty, to_full):
            _rate(connection)
        for _ in range(_ROUNDS):
            before = processor_seconds(empty)
            at_empty.append(_rate(to_empty))
            milliseconds.append((processor_seconds(empty) - before) / _POSTS * 1e3)
            at_full.append(_rate(to_full))
    return at_empty, at_full, milliseconds


def _rate(connection: Connection) -> float:
    began = time.perf_counter()
    for _ in range(_POSTS):
        submit(connection, start=False)
    return _POSTS / (time.perf_counter() - began)
