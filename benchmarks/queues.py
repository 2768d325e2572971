"""task-spooler, GNU parallel and a bare loop of bash, timed at the same 500 × `true`, two at a time."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

from benchmarks.figure import Peer
from benchmarks.peers import why_missing
from benchmarks.work_folder import new_folder

_ROUNDS = 3
_SPOOLER = """
tsp -S 2
for i in $(seq {jobs}); do tsp true; done >/dev/null
tsp -w
while tsp -l | grep -qE 'queued|running'; do sleep 0.01; done
"""


def peers(jobs: int) -> tuple[Peer, ...]:
    return (_spooler(jobs), _parallel(jobs), _bash(jobs))


def _spooler(jobs: int) -> Peer:
    name = "task-spooler"
    if shutil.which("tsp") is None:
        return Peer(name=name, missing=why_missing(name))
    return Peer(name=name, value=max(_spool(jobs) for _ in range(_ROUNDS)))


def _spool(jobs: int) -> float:
    """On a socket of its own, so that nobody's queue is touched."""
    folder = new_folder("spooler")
    environment = {**os.environ, "TS_SOCKET": f"{folder}/socket", "TMPDIR": str(folder)}
    try:
        return _rate(["bash", "-c", _SPOOLER.format(jobs=jobs)], jobs, environment)
    finally:
        subprocess.run(["tsp", "-K"], env=environment, check=True)


def _parallel(jobs: int) -> Peer:
    name = "GNU parallel"
    if shutil.which("parallel") is None:
        return Peer(name=name, missing=why_missing("parallel"))
    command = ["bash", "-c", f"seq {jobs} | parallel -j2 true"]
    return Peer(name=name, value=max(_rate(command, jobs) for _ in range(_ROUNDS)))


def _bash(jobs: int) -> Peer:
    command = ["bash", "-c", f"for i in $(seq {jobs}); do bash -c true; done"]
    return Peer(name="bash -c true in series", value=max(_rate(command, jobs) for _ in range(_ROUNDS)))


def _rate(command: list[str], jobs: int, environment: dict[str, str] | None = None) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return jobs / (time.perf_counter() - began)
