"""From `POST true` until `finished` is seen on the event stream: one at a time, and twenty at once."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from benchmarks.figure import Figure, at_most, median_of, p95
from benchmarks.server import connected, event_stream, fresh_server, submit, wait_for_finished
from tests.support.live_server import LiveServer

_SINGLE_ROUNDS = 3
_SINGLES = 50
_BURST_ROUNDS = 7
_BURST = 20


def measure() -> list[Figure]:
    with fresh_server() as server:
        _seconds_of_singles(server, 5)
        singles = [_seconds_of_singles(server, _SINGLES) for _ in range(_SINGLE_ROUNDS)]
        bursts = [_seconds_of_burst(server) for _ in range(_BURST_ROUNDS)]
    medians = [statistics.median(times) * 1e3 for times in singles]
    tails = [p95(times) * 1e3 for times in singles]
    how = f"{_SINGLES} runs a round, one at a time"
    return [
        median_of("POST true → finished seen, p50", "ms", medians, how, at_most(100)),
        median_of("POST true → finished seen, p95", "ms", tails, how, None),
        median_of(
            f"{_BURST} × true posted at once, all finished",
            "s",
            bursts,
            f"{_BURST} connections, as many at a time as the server decides",
            at_most(1.0),
        ),
    ]


def _seconds_of_singles(server: LiveServer, count: int) -> list[float]:
    times: list[float] = []
    with connected(server) as connection, event_stream(connection) as events:
        for _ in range(count):
            began = time.perf_counter()
            times.append(wait_for_finished(events, [submit(connection)]) - began)
    return times


def _seconds_of_burst(server: LiveServer) -> float:
    with ExitStack() as stack:
        connections = [stack.enter_context(connected(server)) for _ in range(_BURST)]
        events = stack.enter_context(event_stream(connections[0]))
        pool = stack.enter_context(ThreadPoolExecutor(_BURST))
        for connection in connections:
            connection.request("GET", "/health")
        began = time.perf_counter()
        run_ids = list(pool.map(submit, connections))
        return wait_for_finished(events, run_ids) - began
