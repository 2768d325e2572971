"""What the server costs while nothing happens, and its memory after 10,000 runs."""

from __future__ import annotations

import time

import psutil

from benchmarks.figure import Figure, at_most, median_of
from benchmarks.server import connected, event_stream, fresh_server, submit, wait_for_finished
from tests.support.live_server import LiveServer

_SETTLE_SECONDS = 3.0
_WATCH_SECONDS = 10.0
_ROUNDS = 3
_ROWS = 9_700
_EXECUTED = 300


def measure() -> list[Figure]:
    with fresh_server() as server:
        time.sleep(_SETTLE_SECONDS)
        memory = _megabytes(server)
        shares = [_percent_of_a_core(server) for _ in range(_ROUNDS)]
        _use(server)
        used, family = _megabytes(server), _megabytes(server, with_children=True)
        shares_after = [_percent_of_a_core(server) for _ in range(_ROUNDS)]
    how = f"{_WATCH_SECONDS:.0f} s a round"
    after = f"{_ROWS:,} submitted, {_EXECUTED} more executed; {family:.0f} MB with its launcher process"
    return [
        median_of("idle server, memory", "MB", [memory], "resident, once, before any request", at_most(70)),
        median_of("idle server, processor", "% of a core", shares, how, at_most(1.0)),
        median_of("memory after 10,000 runs", "MB", [used], after, at_most(100)),
        median_of("idle after 10,000 runs, processor", "% of a core", shares_after, how, at_most(1.0)),
    ]


def _use(server: LiveServer) -> None:
    with connected(server) as connection, event_stream(connection) as events:
        for _ in range(_ROWS):
            submit(connection, start=False)
        wait_for_finished(events, [submit(connection) for _ in range(_EXECUTED)])


def _family(server: LiveServer) -> list[psutil.Process]:
    assert server.process is not None
    process = psutil.Process(server.process.pid)
    return [process, *process.children(recursive=True)]


def _megabytes(server: LiveServer, *, with_children: bool = False) -> float:
    processes = _family(server) if with_children else _family(server)[:1]
    return sum(process.memory_info().rss for process in processes) / 1e6


def _percent_of_a_core(server: LiveServer) -> float:
    """The launcher process counts too."""
    began, before = time.perf_counter(), _processor_seconds(server)
    time.sleep(_WATCH_SECONDS)
    return (_processor_seconds(server) - before) / (time.perf_counter() - began) * 100


def _processor_seconds(server: LiveServer) -> float:
    times = [process.cpu_times() for process in _family(server)]
    return sum(used.user + used.system for used in times)
