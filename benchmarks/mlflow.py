"""MLflow's own server over SQLite with one worker, asked by the same client as ours."""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.figure import Peer, p95
from benchmarks.peers import MLFLOW, why_missing
from benchmarks.work_folder import new_folder
from labwright.client.connection import Connection
from labwright.domain.errors import LabwrightError

RUNS = 300
_API = "/api/2.0/mlflow"
_LISTS = 40
_PATIENCE_SECONDS = 120.0


def peer(what: str, name: str) -> Peer:
    if not MLFLOW.exists():
        return Peer(name=name, missing=why_missing("MLflow"))
    figures = _figures()
    return Peer(name=name, value=figures[what]) if what in figures else Peer(name=name, missing="did not start")


@functools.cache
def _figures() -> dict[str, float]:
    """Creates a second and p95 milliseconds of a list; empty if its server does not come up."""
    with _server() as connection:
        if connection is None:
            return {}
        experiment = _post(connection, "experiments/create", {"name": "bench"})["experiment_id"]
        rate = max(_create_rate(connection, experiment) for _ in range(3))
        search = {"experiment_ids": [experiment], "max_results": 100}
        return {"create": rate, "list": p95([_milliseconds(connection, search) for _ in range(_LISTS)])}


def _create_rate(connection: Connection, experiment: str) -> float:
    began = time.perf_counter()
    for _ in range(RUNS // 3):
        _post(connection, "runs/create", {"experiment_id": experiment, "start_time": int(time.time() * 1000)})
    return RUNS / 3 / (time.perf_counter() - began)


def _milliseconds(connection: Connection, search: dict[str, Any]) -> float:
    began = time.perf_counter()
    connection.request("POST", f"{_API}/runs/search", search)
    return (time.perf_counter() - began) * 1e3


def _post(connection: Connection, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = connection.request("POST", f"{_API}/{path}", body).json
    return answer


@contextmanager
def _server() -> Iterator[Connection | None]:
    folder = new_folder("mlflow")
    port = _free_port()
    store = ["--backend-store-uri", f"sqlite:///{folder}/m.db", "--artifacts-destination", str(folder)]
    process = subprocess.Popen(
        [MLFLOW.absolute(), "server", *store, "--host", "127.0.0.1", "--port", str(port), "--workers", "1"],
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    connection = Connection(f"http://127.0.0.1:{port}", "")
    try:
        yield connection if _comes_up(connection, process) else None
    finally:
        connection.close()
        _end(process)


def _comes_up(connection: Connection, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            connection.request("GET", "/health")
            return True
        except LabwrightError:
            time.sleep(0.2)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole group: its workers are children."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
