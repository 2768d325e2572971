"""What other loggers reach at the same work: wandb offline, trackio, Aim (each in its own environment) and MLflow."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import time

from benchmarks import mlflow
from benchmarks.figure import Peer
from benchmarks.peers import LOGGERS, MLFLOW, is_installed, python_of, why_missing
from benchmarks.work_folder import new_folder
from labwright.client.connection import Connection

BATCH = 500
READ_POINTS = 20_000
_PAGE = 10_000
_PATIENCE_SECONDS = 300.0

_SCRIPT = """
import json, sys, time
peer, folder, clock = sys.argv[1], sys.argv[2], time.perf_counter_ns
if peer == "wandb":
    import wandb
    run = wandb.init(project="bench", settings=wandb.Settings(console="off"))
    log, finish = run.log, run.finish
elif peer == "trackio":
    import trackio
    trackio.init(project="bench")
    log, finish = trackio.log, trackio.finish
else:
    import aim
    run = aim.Run(repo=folder, log_system_params=False, capture_terminal_logs=False)
    log, finish = run.track, run.close
many = {f"train/metric_{number}": number * 0.37 for number in range(10)}
times = []
for step in range(10_000):
    began = clock()
    log({"loss": step * 0.37, "acc": step * 0.11}, step=step)
    times.append(clock() - began)
times.sort()
began = clock()
for step in range(10_000, 15_000):
    log(many, step=step)
finish()
rate = 50_000 / ((clock() - began) / 1e9)
print(json.dumps({"p50": times[5_000] / 1e3, "p99": times[9_900] / 1e3, "rate": rate}))
"""


def peers(what: str) -> list[Peer]:
    return [_peer(name, package, what) for name, package in LOGGERS.items()]


def _peer(name: str, package: str, what: str) -> Peer:
    if not is_installed(package):
        return Peer(name=name, missing=why_missing(name))
    figures = _figures(package)
    return Peer(name=name, value=figures[what]) if figures else Peer(name=name, missing="did not work")


@functools.cache
def _figures(package: str) -> dict[str, float]:
    """The microseconds of a call, and points a second until all of them are stored; empty if it fails."""
    folder = new_folder(package)
    done = subprocess.run(
        [python_of(package).absolute(), "-c", _SCRIPT, package, folder],
        env={**os.environ, "HOME": str(folder), "TRACKIO_DIR": f"{folder}/t", "WANDB_MODE": "offline"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
    )
    if done.returncode != 0:
        return {}
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def mlflow_peer(what: str, name: str) -> Peer:
    if not MLFLOW.exists():
        return Peer(name=name, missing=why_missing("MLflow"))
    figures = _mlflow_figures()
    return Peer(name=name, value=figures[what]) if figures else Peer(name=name, missing="did not start")


@functools.cache
def _mlflow_figures() -> dict[str, float]:
    """Points a second in batches, and the milliseconds that reading them all takes; empty if it does not come up."""
    with mlflow._server() as connection:
        if connection is None:
            return {}
        experiment = mlflow._post(connection, "experiments/create", {"name": "metrics"})["experiment_id"]
        run = mlflow._post(connection, "runs/create", {"experiment_id": experiment})["run"]["info"]["run_id"]
        began = time.perf_counter()
        for first in range(0, READ_POINTS, BATCH):
            points = [
                {"key": "loss", "value": step * 0.37, "timestamp": step, "step": step}
                for step in range(first, first + BATCH)
            ]
            mlflow._post(connection, "runs/log-batch", {"run_id": run, "metrics": points})
        rate = READ_POINTS / (time.perf_counter() - began)
        return {"batch": rate, "read": _milliseconds_to_read(connection, run)}


def _milliseconds_to_read(connection: Connection, run: str) -> float:
    """All points, page by page: it cannot thin a series itself."""
    began, page, count = time.perf_counter(), "", 0
    while count < READ_POINTS:
        query = f"run_id={run}&metric_key=loss&max_results={_PAGE}{page and f'&page_token={page}'}"
        answer = connection.request("GET", f"/api/2.0/mlflow/metrics/get-history?{query}").json
        count += len(answer["metrics"])
        page = answer.get("next_page_token", "")
    return (time.perf_counter() - began) * 1e3
