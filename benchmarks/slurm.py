"""300 runs that become ready at once, until Slurm has them all: one array, on a simulated cluster."""

from __future__ import annotations

import os
import time

from benchmarks.figure import Figure, at_most, median_of
from benchmarks.server import fresh_server
from labwright.sim.slurm import SlurmSize, simulated_slurm
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

_TASKS = 300
_ROUNDS = 3
_TARGET_SECONDS = 5.0


def measure() -> list[Figure]:
    with simulated_slurm(SlurmSize(nodes=3, gpus=2)) as cluster:
        rounds = []
        for number in range(_ROUNDS):
            with fresh_server(SLURM_CONF=str(cluster.conf)) as server:
                rounds.append(_seconds_until_sent(server, number))
            cluster.client("scancel", f"--user={os.getuid()}")
    how = "from the end of the run they waited for until the last has its job id: folders made, sbatch, commit"
    return [median_of(f"{_TASKS} array tasks submitted", "s", rounds, how, at_most(_TARGET_SECONDS))]


def _seconds_until_sent(server: LiveServer, number: int) -> float:
    gate = server.project / f"gate-{number}"
    parent = server.submit(f"until [ -e '{gate}' ]; do sleep 0.01; done")["id"]
    server.wait_for_status(parent, "running")
    waiting = [server.submit("sleep 1000", after=[parent])["id"] for _ in range(_TASKS)]
    gate.touch()
    server.wait_for_end(parent)
    began = time.perf_counter()
    wait_until(lambda: _sent(server) >= len(waiting), "Slurm to have them all", timeout=60)
    return time.perf_counter() - began


def _sent(server: LiveServer) -> int:
    listed = server.get("/runs?limit=1000&status=launching,running")
    return sum(1 for run in listed if run["slurm_job_id"])
