"""`make soak`: five runs a second for two hours. The server's resource use must not grow with time.

SOAK_SECONDS and SOAK_RATE can be set. Once a minute it measures the server's memory, its open files, the time of a
request and the bytes on disk per run. It compares the last quarter with the second, since a new server still fills
its caches.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import psutil

from tests.support.live_server import ENDED, LiveServer

LOOKS = 60  # the minimum number of samples, however short the soak is
REQUESTS_A_LOOK = 20
COMMAND = 'for i in 1 2 3; do echo "{\\"step\\": $i, \\"loss\\": 0.$i}"; done'


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    memory_mb: float
    open_files: float
    submit_ms: float
    list_ms: float
    kilobytes_a_run: float


# allowed growth, as a factor
ALLOWED = Sample(memory_mb=1.15, open_files=1.3, submit_ms=1.5, list_ms=1.5, kilobytes_a_run=1.15)


def take_sample(server: LiveServer, submitted: int) -> Sample:
    assert server.process is not None
    own = psutil.Process(server.process.pid)
    return Sample(
        memory_mb=own.memory_info().rss / 1e6,
        open_files=float(own.num_fds()),
        submit_ms=_milliseconds(lambda: server.post("/runs", {"command": "true"})),
        list_ms=_milliseconds(lambda: server.get("/runs?limit=100")),
        kilobytes_a_run=_bytes_below(server.state) / 1e3 / submitted,
    )


def _milliseconds(request: Callable[[], object]) -> float:
    times = []
    for _ in range(REQUESTS_A_LOOK):
        began = time.perf_counter()
        request()
        times.append((time.perf_counter() - began) * 1e3)
    return min(times)  # other load on the machine can only make a request slower


def _bytes_below(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if not path.is_symlink())


def soak(server: LiveServer, seconds: float, rate: float) -> list[Sample]:
    looks: list[Sample] = []
    began = time.monotonic()
    every = min(60.0, seconds / LOOKS)
    submitted = 0
    while (now := time.monotonic() - began) < seconds:
        due = int(now * rate)
        for _ in range(submitted, due):
            server.submit(COMMAND)
        submitted = max(submitted, due)
        if now >= len(looks) * every and submitted:
            looks.append(take_sample(server, submitted + len(looks) * REQUESTS_A_LOOK))
            print(f"{now:7.0f} s  {submitted:6d} runs  {asdict(looks[-1])}", flush=True)
        time.sleep(1 / rate)
    return looks


def growth(looks: list[Sample]) -> dict[str, tuple[float, float, float]]:
    """Return for each figure its median in the second quarter, its median in the last, and the allowed factor."""
    quarter = len(looks) // 4
    early, late = looks[quarter : 2 * quarter], looks[-quarter:]
    found = {}
    for name, allowed in asdict(ALLOWED).items():
        found[name] = (median(getattr(x, name) for x in early), median(getattr(x, name) for x in late), allowed)
    return found


def main() -> None:
    seconds = float(os.environ.get("SOAK_SECONDS", "7200"))
    rate = float(os.environ.get("SOAK_RATE", "5"))
    print(f"soak for {seconds:g} s at {rate:g} runs/s", flush=True)
    with tempfile.TemporaryDirectory(prefix="labwright-soak-") as folder:
        project = Path(folder) / "project"
        project.mkdir()
        server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="4").start(cold=True)
        try:
            grown = growth(soak(server, seconds, rate))
            active = [run for run in server.get("/runs?limit=1000") if run["status"] not in (*ENDED, "ready")]
        finally:
            server.stop()
    for name, (early, late, allowed) in grown.items():
        print(f"{'ok  ' if late <= early * allowed else 'GREW'}  {name:16} {early:10.2f} -> {late:10.2f}")
    print(f"{len(active)} runs not yet ended when the last was submitted")
    kept_up = len(active) < rate * 10
    sys.exit(0 if kept_up and all(late <= early * allowed for early, late, allowed in grown.values()) else 1)


if __name__ == "__main__":
    main()
