"""Watch jobs that have no supervisor: one whose supervisor was killed, or a script that was started by hand.

Their parent learns the exit code, and we do not. A script with the SDK writes it itself, or the C library does
(`exit.code`). Otherwise the run is lost.
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

_NO_EXIT = "The process that logged it ended without an exit code: it was killed, or it called os._exit."


def adopt(run_dir: str) -> None:
    """Watch a job whose supervisor was killed, unless its monitor still does."""
    paths = RunPaths(run_dir)
    spec = load_spec(paths)
    record = RunJournal(paths, spec["run"]["id"], spec["sidecar"]["wake"])
    watcher = read_identity(paths.heartbeat)
    if watcher is None or not watcher.is_alive:  # a monitor may have started just before the supervisor was killed
        Monitor(paths, spec, record, started_at(record)).watch_orphan()


def started_at(record: RunJournal) -> float:
    """Return when the job started, from its events or, if the supervisor could not write them, from its processes."""
    events = [event for event in record.events() if event["event"] in ("started", "waiting")]
    last = events[-1] if events else None
    if last is None or last["event"] != "started":
        last = _write_started(record)
    return float(last["time"]) if last else os.path.getmtime(record.paths.spec)


def _write_started(record: RunJournal) -> dict[str, Any] | None:
    """Write the missing event `started`, and return it; None if no process of the run is left."""
    starts = {pid: ticks for pid in processes_of_run(record.run_id) if (ticks := start_time(pid)) is not None}
    if not starts:
        return None
    oldest = min(starts, key=lambda pid: (starts[pid], pid))
    boot_time = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    leases = [event["gpu_uuids"] for event in record.events() if event["event"] == "leased"]
    facts: dict[str, Any] = {
        "time": boot_time + starts[oldest] / os.sysconf("SC_CLK_TCK"),
        "job": identity(oldest).to_dict(),
        "gpu_uuids": list(leases[-1]) if leases else [],
        "output_pipe": pipe_at(f"/proc/{oldest}/fd/1"),
    }
    record.event("started", **facts)
    return facts


def watch_external(run_dir: str) -> None:
    """Watch a script that was started by hand, and record how it ended."""
    paths = RunPaths(run_dir)
    spec = load_spec(paths)
    record = RunJournal(paths, spec["run"]["id"], spec["sidecar"]["wake"])
    process = read_identity(paths.claim(1))
    if process is None:
        return  # the run was withdrawn: an earlier copy of the request had been answered
    Monitor(paths, spec, record, os.path.getmtime(paths.spec), process=process).watch_process()
    facts = _end_facts(paths, record)
    if facts["status"] in ("failed", "lost") and spec["sidecar"].get("alerts", {}).get("builtin", {}).get("exit", True):
        record.event("alert", rule="exit", message=facts["error"], severity="critical", choices=["ignore", "rerun"])
    record.wake_server("events")


def _end_facts(paths: RunPaths, record: RunJournal) -> dict[str, Any]:
    """Return the content of `exit.json`. Write it first if the script did not."""
    try:
        facts: dict[str, Any] = read_json(paths.exit)
    except FileNotFoundError:
        facts = {
            **_status_facts(paths),
            "signal": None,
            "attempt": 1,
            "started_at": os.path.getmtime(paths.spec),
            "ended_at": time.time(),
            "usage": {},
        }
        record.exit(facts)
    return facts


def _status_facts(paths: RunPaths) -> dict[str, Any]:
    code = kept_exit_code(paths.exit_code)
    if os.path.exists(paths.stop):
        return {"status": "stopped", "reason": "stopped on request", "exit_code": code, "error": None}
    if code is None:
        return {"status": "lost", "reason": "no_exit", "exit_code": None, "error": _NO_EXIT}
    failed = code != 0
    return {
        "status": "failed" if failed else "finished",
        "reason": "exit_code" if failed else "",
        "exit_code": code,
        "error": f"Exit code {code}" if failed else None,
    }
