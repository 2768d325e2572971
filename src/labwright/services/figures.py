"""Numbers for monitoring, as `/metrics/prometheus` shows them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import psutil

from labwright.compute.lab import Lab
from labwright.domain.run import RunStatus
from labwright.services import housekeeping
from labwright.store import alerts, events, runs

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    help: str
    values: dict[Labels, float]
    only_grows: bool = False


def figures(lab: Lab) -> list[Figure]:
    """Return figures about runs, GPUs and disk. Those about this process have names that dashboards expect."""
    reader = lab.db.reader()
    counts = runs.count_by_status(reader)
    by_status: dict[Labels, float] = {(("status", status.value),): float(counts.get(status, 0)) for status in RunStatus}
    gpus = lab.cluster.current.gpus
    leased = sum(gpu.lease is not None for gpu in gpus)
    database_bytes = housekeeping.database_bytes(lab.paths)
    free_bytes = shutil.disk_usage(lab.paths.state).free
    process = psutil.Process()
    with process.oneshot():
        cpu = process.cpu_times()
        memory, files, started = process.memory_info().rss, process.num_fds(), process.create_time()
    return [
        Figure("labwright_healthy", "1 if runs can be started.", _one(lab.is_healthy)),
        Figure("labwright_runs", "Runs by status, archived ones included.", by_status),
        Figure("labwright_alerts_pending", "Alerts without an answer.", _one(alerts.count_pending(reader))),
        Figure("labwright_events_total", "Stored events so far.", _one(events.last_seq(reader)), only_grows=True),
        Figure("labwright_gpus", "GPUs of this machine.", _one(len(gpus))),
        Figure("labwright_gpus_leased", "GPUs that a run of any user holds.", _one(leased)),
        Figure("labwright_database_bytes", "Size of the database.", _one(database_bytes)),
        Figure("labwright_disk_free_bytes", "Free disk space for the project.", _one(free_bytes)),
        Figure("process_resident_memory_bytes", "Memory of the server.", _one(memory)),
        Figure("process_open_fds", "Open files of the server.", _one(files)),
        Figure("process_cpu_seconds_total", "Processor time.", _one(cpu.user + cpu.system), only_grows=True),
        Figure("process_start_time_seconds", "When the server was started.", _one(started)),
    ]


def _one(value: float) -> dict[Labels, float]:
    return {(): float(value)}
