"""200 clients on the event stream at once: each hears of every run, soon, and the server stays small."""

from __future__ import annotations

import selectors
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import psutil

from benchmarks.figure import Figure, at_most, median_of, p95
from benchmarks.server import connected, fresh_server, processor_seconds, submit
from tests.support.live_server import LiveServer

CLIENTS = 200
_RUNS = 50
_PATIENCE_SECONDS = 120.0


class Watcher:
    """One client that only listens: what it heard, and when it had heard the end of a run."""

    def __init__(self, server: LiveServer) -> None:
        address = urlsplit(server.url)
        self.socket = socket.create_connection((address.hostname, address.port))
        asked = f"GET /events/stream?topics=events&types=run.status HTTP/1.1\r\nHost: {address.netloc}\r\n"
        self.socket.sendall(f"{asked}X-Auth-Token: {server.token}\r\n\r\n".encode())
        self._heard = b""
        while b"event: hello" not in self._heard:
            self._heard += self.socket.recv(1 << 16)
        self.seen: dict[str, float] = {}

    def listen(self, wanted: set[str]) -> None:
        """Take what has come; only whole frames count."""
        self._heard += self.socket.recv(1 << 18)
        whole, _, self._heard = self._heard.rpartition(b"\n\n")
        for frame in whole.split(b"\n\n"):
            if b'"exit_code"' in frame:
                for run_id in wanted - set(self.seen):
                    if run_id.encode() in frame:
                        self.seen[run_id] = time.perf_counter()


def measure() -> list[Figure]:
    with fresh_server() as server, watching(server) as (watchers, megabytes):
        before = processor_seconds(server)
        delays, missed = _delays(server, watchers)
        spent = (processor_seconds(server) - before) / _RUNS
    how = f"{CLIENTS} connections, {_RUNS} runs one after the other"
    return [
        median_of(f"{CLIENTS} event streams: ends not heard", "", [float(missed)], how, at_most(0)),
        median_of(f"{CLIENTS} event streams: first to last client, p50", "ms", [statistics.median(delays)], how, None),
        median_of(f"{CLIENTS} event streams: first to last client, p95", "ms", [p95(delays)], how, at_most(250)),
        median_of(
            f"{CLIENTS} event streams: memory for each", "kB", [megabytes * 1e3 / CLIENTS], "resident", at_most(250)
        ),
        median_of(f"{CLIENTS} event streams: processor for each run", "ms", [spent * 1e3], "of the server", None),
    ]


@contextmanager
def watching(server: LiveServer) -> Iterator[tuple[list[Watcher], float]]:
    """All of them open, and how many MB they took."""
    assert server.process is not None
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    with ExitStack() as stack:
        watchers = [Watcher(server) for _ in range(CLIENTS)]
        for watcher in watchers:
            stack.callback(watcher.socket.close)
        yield watchers, (process.memory_info().rss - before) / 1e6


def _delays(server: LiveServer, watchers: list[Watcher]) -> tuple[list[float], int]:
    """For each run the milliseconds from the first client that heard its end to the last; and ends nobody heard."""
    delays: list[float] = []
    missed = 0
    with selectors.DefaultSelector() as selector, connected(server) as connection:
        for watcher in watchers:
            selector.register(watcher.socket, selectors.EVENT_READ, watcher)
        for _ in range(_RUNS):
            run_id = submit(connection)
            heard = _hear_all(selector, watchers, run_id)
            missed += CLIENTS - len(heard)
            delays.append((max(heard) - min(heard)) * 1e3 if heard else _PATIENCE_SECONDS * 1e3)
    return delays, missed


def _hear_all(selector: selectors.BaseSelector, watchers: list[Watcher], run_id: str) -> list[float]:
    deadline = time.perf_counter() + _PATIENCE_SECONDS
    while time.perf_counter() < deadline and not all(run_id in watcher.seen for watcher in watchers):
        for key, _ in selector.select(timeout=1.0):
            key.data.listen({run_id})
    return [watcher.seen[run_id] for watcher in watchers if run_id in watcher.seen]
