"""The end of a 1 GB log, and its digest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.figure import Figure, at_most, median_of, p95_rounds
from benchmarks.server import connected, fresh_server, milliseconds_of
from labwright.paths import ProjectPaths

_SIZE = 10**9
_BLOCK_LINES = 20_000
_ROUNDS = 5


def measure() -> list[Figure]:
    with fresh_server() as server, connected(server) as connection:
        run_id = server.submit("true")["id"]
        server.wait_for_end(run_id)
        log = Path(ProjectPaths(server.project).run(run_id).output)
        write_log(log)
        assert server.get(f"/runs/{run_id}/logs")["total_size"] >= _SIZE

        def get(path: str) -> Callable[[], float]:
            return lambda: milliseconds_of(connection, f"/runs/{run_id}/logs{path}")

        tail = p95_rounds(get("?offset=-10000"), _ROUNDS, 100)
        digest = p95_rounds(get("/digest"), _ROUNDS, 20)
        log.unlink()
    return [
        median_of("tail of a 1 GB log, p95", "ms", tail, "p95 of 100 requests a round", at_most(10)),
        median_of("digest of a 1 GB log, p95", "ms", digest, "p95 of 20 requests a round; no error in it", None),
    ]


def write_log(path: Path) -> None:
    """Real bytes, line by line of a training loop; no holes."""
    lines = [f"step {number:>7} loss 0.{number:06} lr 0.0003 tokens/s 51234\n" for number in range(_BLOCK_LINES)]
    block = "".join(lines).encode()
    with open(path, "wb") as file:
        while file.tell() < _SIZE:
            file.write(block)
