"""Watch a process that nobody of ours started: a script with the SDK in it, run by hand.

It is sampled and judged like any run. Its parent learns the exit code and we do not: the script says it, else the C
library did (`exit.code`), else it was killed and the run is lost.
"""

from __future__ import annotations

import os
import time
from typing import Any

from labwright.files import read_json
from labwright.paths import RunPaths
from labwright.processes import identity, kept_exit_code, processes_of_run, read_identity, start_time
from labwright.sidecar.monitor import Monitor
from labwright.sidecar.record import RunJournal, load_spec
from labwright.sidecar.relay import pipe_at

_LAST_WORDS = "The process that logged it ended without saying how: it was killed, or left by os._exit."


def adopt(run_dir: str) -> None:
    paths = RunPaths(run_dir)
    spec = load_spec(paths)
    record = RunJournal(paths, spec["run"]["id"], spec["sidecar"]["wake"])
    watcher = read_identity(paths.heartbeat)
    if watcher is None or not watcher.is_alive:  # its monitor may have begun just before the supervisor was killed
        Monitor(paths, spec, record, started_at(record)).watch_orphan()


def started_at(record: RunJournal) -> float:
    """As its record tells; if it does not, its live processes do, and the record is made whole."""
    last = _last_word(record)
    if last is None or last["event"] != "started":
        last = _write_started(record)
    return float(last["time"]) if last else os.path.getmtime(record.paths.spec)


def _last_word(record: RunJournal) -> dict[str, Any] | None:
    """Of the events that begin or end a stretch of running."""
    words = [event for event in record.events() if event["event"] in ("started", "waiting")]
    return words[-1] if words else None


def _write_started(record: RunJournal) -> dict[str, Any] | None:
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


def _leased(record: RunJournal) -> list[str]:
    leases = [event["gpu_uuids"] for event in record.events() if event["event"] == "leased"]
    return list(leases[-1]) if leases else []


def _epoch_of(ticks: int) -> float:
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time() - since_boot + ticks / os.sysconf("SC_CLK_TCK")


def watch_external(run_dir: str) -> None:
    paths = RunPaths(run_dir)
    spec = load_spec(paths)
    record = RunJournal(paths, spec["run"]["id"], spec["sidecar"]["wake"])
    process = read_identity(paths.claim(1))
    if process is None:
        return  # it was taken back: the request had been answered before
    Monitor(paths, spec, record, os.path.getmtime(paths.spec), process=process).watch_process()
    facts = _end_facts(paths, record)
    if facts["status"] in ("failed", "lost") and spec["sidecar"].get("alerts", {}).get("builtin", {}).get("exit", True):
        record.event("alert", rule="exit", message=facts["error"], severity="critical", choices=["ignore", "rerun"])
    record.wake_server("events")


def _end_facts(paths: RunPaths, record: RunJournal) -> dict[str, Any]:
    """As the script wrote them; where it could not, they are written now."""
    try:
        facts: dict[str, Any] = read_json(paths.exit)
    except FileNotFoundError:
        facts = {
            **_how_it_ended(paths),
            "signal": None,
            "attempt": 1,
            "started_at": os.path.getmtime(paths.spec),
            "ended_at": time.time(),
            "usage": {},
        }
        record.exit(facts)
    return facts


def _how_it_ended(paths: RunPaths) -> dict[str, Any]:
    code = kept_exit_code(paths.exit_code)
    if os.path.exists(paths.stop):
        return {"status": "stopped", "reason": "stopped on request", "exit_code": code, "error": None}
    if code is None:
        return {"status": "lost", "reason": "no_exit", "exit_code": None, "error": _LAST_WORDS}
    failed = code != 0
    return {
        "status": "failed" if failed else "finished",
        "reason": "exit_code" if failed else "",
        "exit_code": code,
        "error": f"Exit code {code}" if failed else None,
    }
