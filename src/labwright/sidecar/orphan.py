"""A job whose supervisor was killed: when it began, also where the supervisor had no time to say so."""

from __future__ import annotations

import os
import time
from typing import Any

from labwright.processes import identity, processes_of_run, start_time
from labwright.sidecar.record import RunRecord


def started_at(record: RunRecord) -> float:
    """As its record tells; if it does not, its live processes do, and the record is made whole."""
    last = _last_word(record)
    if last is None or last["event"] != "started":
        last = _write_started(record)
    return float(last["time"]) if last else os.path.getmtime(record.paths.spec)


def _last_word(record: RunRecord) -> dict[str, Any] | None:
    """Of the events that begin or end a stretch of running."""
    words = [event for event in record.events() if event["event"] in ("started", "waiting")]
    return words[-1] if words else None


def _write_started(record: RunRecord) -> dict[str, Any] | None:
    began = {pid: ticks for pid in processes_of_run(record.run_id) if (ticks := start_time(pid)) is not None}
    if not began:
        return None
    eldest = min(began, key=lambda pid: (began[pid], pid))
    facts: dict[str, Any] = {
        "time": _epoch_of(began[eldest]),
        "job": identity(eldest).to_dict(),
        "gpu_uuids": _leased(record),
    }
    record.event("started", **facts)
    return facts


def _leased(record: RunRecord) -> list[str]:
    leases = [event["gpu_uuids"] for event in record.events() if event["event"] == "leased"]
    return list(leases[-1]) if leases else []


def _epoch_of(ticks: int) -> float:
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time() - since_boot + ticks / os.sysconf("SC_CLK_TCK")
