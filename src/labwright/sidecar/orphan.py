"""A job whose supervisor was killed: when it began, also where the supervisor had no time to say so; what it prints."""

from __future__ import annotations

import os
import time
from typing import Any

from labwright.paths import RunPaths
from labwright.processes import identity, processes_of_run, start_time
from labwright.sidecar.record import RunRecord
from labwright.sidecar.relay import PATIENCE_SECONDS, find_pipe, pipe_at, start_relay

_MOMENT_SECONDS = 0.02


def started_at(record: RunRecord) -> float:
    """As its record tells; if it does not, its live processes do, and the record is made whole."""
    last = _last_word(record)
    if last is None or last["event"] != "started":
        last = _write_started(record)
    return float(last["time"]) if last else os.path.getmtime(record.paths.spec)


class OrphanedOutput:
    """Carried by a relay of ours too: the first one may have been killed with its supervisor."""

    def __init__(self, paths: RunPaths, record: RunRecord) -> None:
        self._paths = paths
        self._record = record
        self._relay: int | None = None

    def tend(self) -> None:
        if self._relay is not None and os.waitpid(self._relay, os.WNOHANG)[0]:
            self._relay = None
        pipe = self._pipe() if self._relay is None else None
        if pipe is not None and (path := find_pipe(self._record.run_id, pipe)):
            self._relay = start_relay(path, self._paths.output)

    def settle(self) -> None:
        """The job is gone. The relay ends with the last writer; one that waits for room on the disk goes on alone."""
        patience = time.monotonic() + PATIENCE_SECONDS
        while self._relay is not None and time.monotonic() < patience and not os.waitpid(self._relay, os.WNOHANG)[0]:
            time.sleep(_MOMENT_SECONDS)

    def _pipe(self) -> int | None:
        started = [event for event in self._record.events() if event["event"] == "started"]
        return started[-1].get("output_pipe") if started else None


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
        "output_pipe": pipe_at(f"/proc/{eldest}/fd/1"),
    }
    record.event("started", **facts)
    return facts


def _leased(record: RunRecord) -> list[str]:
    leases = [event["gpu_uuids"] for event in record.events() if event["event"] == "leased"]
    return list(leases[-1]) if leases else []


def _epoch_of(ticks: int) -> float:
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time() - since_boot + ticks / os.sysconf("SC_CLK_TCK")
