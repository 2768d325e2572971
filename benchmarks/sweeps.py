"""Sweeps of 10,000 runs: making and queueing one, its page when all have ended, and the choice of what starts next."""

from __future__ import annotations

import json
import random
import time
from array import array
from pathlib import Path

from benchmarks.figure import Figure, at_most, median_of
from benchmarks.server import connected, fresh_server, milliseconds_of, processor_seconds
from benchmarks.work_folder import new_folder
from labwright.client.connection import Connection
from labwright.compute.scheduler import Capacity, choose
from labwright.domain.cluster import Cluster, ClusterType
from labwright.domain.ids import RUN, SWEEP, new_id
from labwright.domain.metrics.points import Points
from labwright.domain.run import Run, RunStatus, copies
from labwright.domain.search.configurations import config_hash
from labwright.domain.sweep import Sweep, SweepMethod, SweepStatus
from labwright.store import metrics, runs, sweeps
from labwright.store.database import Database, Transaction
from labwright.store.queue import load_holders, load_queues
from tests.support.live_server import LiveServer

_SIDE = 100
_ROUNDS = 5
_CHOICES = 50
_GETS = 20
_AT = "2026-01-01T00:00:00.000Z"


def measure() -> list[Figure]:
    return [*_queueing(), *_page(), _choice()]


def _queueing() -> list[Figure]:
    """The scheduler is kept from beginning more than one, since `parallel` is 1 and the first one sleeps."""
    with fresh_server() as server, connected(server) as connection:
        rounds = [_make(server, connection) for _ in range(_ROUNDS)]
    how = "POST /sweeps until its answer, all of its runs queued"
    name = "expand and queue 10,000 configurations"
    seconds, spent = zip(*rounds, strict=True)
    return [
        median_of(name, "s", seconds, how, at_most(2)),
        median_of(f"{name}, processor time of the server", "s", spent, how, None),
    ]


def _make(server: LiveServer, connection: Connection) -> tuple[float, float]:
    values = [number / 1000 for number in range(_SIDE)]
    body = {
        "name": "many",
        "base_command": "sleep 1000; python train.py --lr {lr}",
        "parameters": {"lr": values, "dropout": values},
        "parallel": 1,
        "auto_start": True,
    }
    began, before = time.perf_counter(), processor_seconds(server)
    made = connection.request("POST", "/sweeps", body).json
    seconds, spent = time.perf_counter() - began, processor_seconds(server) - before
    assert made["progress"]["total"] == _SIDE * _SIDE
    connection.request("POST", f"/sweeps/{made['id']}/stop")
    return seconds, spent


def _page() -> list[Figure]:
    database, sweep_id = _filled(RunStatus.FINISHED)
    with fresh_server(database) as server, connected(server) as connection:
        figures = []
        for path, words in ((f"/sweeps/{sweep_id}", "the sweep"), (f"/sweeps/{sweep_id}/results", "its results")):
            milliseconds_of(connection, path)
            before = processor_seconds(server)
            rounds = [milliseconds_of(connection, path) for _ in range(_GETS)]
            spent = (processor_seconds(server) - before) / _GETS * 1e3
            name, how = f"sweep page of 10,000 runs, {words}", "2,500 configurations, 4 seeds each, all with a value"
            figures.append(median_of(name, "ms", rounds, how, at_most(200)))
            figures.append(median_of(f"{name}, processor time of the server", "ms", [spent], how, None))
    return figures


def _choice() -> Figure:
    path, sweep_id = _filled(RunStatus.QUEUED)
    database = Database(path)
    rounds = [_choose_milliseconds(database, sweep_id) for _ in range(_CHOICES)]
    database.close()
    how = "reading the queues and choosing, four cards free"
    return median_of("scheduler decision with 10,000 queued runs", "ms", rounds, how, at_most(5))


def _choose_milliseconds(database: Database, sweep_id: str) -> float:
    began = time.perf_counter()
    reader = database.reader()
    active = load_holders(reader, Cluster(type=ClusterType.LOCAL_GPU))
    queues = load_queues(reader, set(), 4)
    chosen = choose(queues, active, Capacity(gpus=4, cpu_runs=4), {sweep_id: 3}, time.time(), 30.0)
    spent = (time.perf_counter() - began) * 1e3
    assert len(chosen) == 3
    return spent


def _filled(status: RunStatus) -> tuple[Path, str]:
    path = new_folder("sweep") / "labwright.db"
    database = Database(path)
    sweep = Sweep(
        id=new_id(SWEEP),
        name="many",
        created_at=_AT,
        created_by="person",
        method=SweepMethod.GRID,
        status=SweepStatus.RUNNING,
        parameters={"lr": [], "dropout": [], "depth": []},
        metric={"key": "val/loss", "goal": "min", "use": "last"},
        seeds=(0, 1, 2, 3),
    )
    with database.transaction() as tx:
        sweeps.insert(tx, sweep, "person")
        _insert_runs(tx, sweep, status)
    database.close()
    return path, sweep.id


def _insert_runs(tx: Transaction, sweep: Sweep, status: RunStatus) -> None:
    base = Run(id="", name="", command="python train.py", workdir="/", created_at=_AT, created_by="person")
    base = base.evolve(sweep_id=sweep.id, gpus=1, queued_at=_AT, snapshot={"git_commit": "0" * 40, "hash": "0" * 64})
    source = random.Random(1)
    variants = []
    for trial in range(_SIDE * _SIDE // 4):
        params = {"lr": source.random(), "dropout": trial % 50 / 100, "depth": trial % 7}
        for seed in range(4):
            variants.append(
                {
                    "id": new_id(RUN),
                    "name": f"run {trial}",
                    "status": status,
                    "params": params,
                    "seed": seed,
                    "trial": trial,
                    "config_hash": config_hash(params),
                    "ended_at": _AT if status is RunStatus.FINISHED else None,
                }
            )
    made = list(copies(base, variants))
    runs.insert_many(tx, made, "person")
    if status is RunStatus.FINISHED:
        for record in made:
            loss = json.loads(record.text)["params"]["lr"] + source.random()
            first = Points(array("q", [1]), array("d", [0.0]), array("d", [loss]))
            metrics.begin(tx, record.id, "sdk", 1, [("val/loss", first)])
