"""500 × `true`, two at a time: from the first submit until the last has finished, as the peers are timed."""

from __future__ import annotations

import os
import time

from benchmarks import queues
from benchmarks.figure import Figure, at_least, best_rate, median_of
from benchmarks.server import connected, event_stream, fresh_server, processor_seconds, submit, wait_for_finished
from tests.support.live_server import LiveServer

JOBS = 500
_ROUNDS = 5


def measure() -> list[Figure]:
    with fresh_server(LABWRIGHT_MAX_PARALLEL="2") as server:
        with connected(server) as connection, event_stream(connection) as events:
            wait_for_finished(events, [submit(connection)])  # the launcher is warm from here on
        before = processor_seconds(server)
        whole = [_rate_with_submits(server) for _ in range(_ROUNDS)]
        cost = (processor_seconds(server) - before) / (_ROUNDS * JOBS) * 1e3
        queued = [_rate_of_queued(server) for _ in range(_ROUNDS)]
    peers = queues.peers(JOBS)
    return [
        best_rate(f"drain {JOBS} × true, first submit to last end", whole, "over HTTP", at_least(150), *peers),
        median_of("drain, processor time of the server a run", "ms", [cost], "posting it included", None),
        best_rate(f"drain {JOBS} × true, already queued", queued, "from the moment a slot is free", at_least(150)),
    ]


def _rate_with_submits(server: LiveServer) -> float:
    with connected(server) as connection, event_stream(connection) as events:
        began = time.perf_counter()
        run_ids = [submit(connection) for _ in range(JOBS)]
        return JOBS / (wait_for_finished(events, run_ids) - began)


def _rate_of_queued(server: LiveServer) -> float:
    """Two runs that read a pipe hold both slots while the rest is queued; closing the pipe lets them go."""
    gate = server.project / "gate"
    gate.unlink(missing_ok=True)
    os.mkfifo(gate)
    with connected(server) as connection, event_stream(connection) as events:
        holders = [submit(connection, "cat gate") for _ in range(2)]
        with open(gate, "wb"):
            run_ids = [submit(connection) for _ in range(JOBS)]
            for run_id in holders:
                server.wait_for_status(run_id, "running")
            began = time.perf_counter()
        return JOBS / (wait_for_finished(events, run_ids) - began)
