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
from labwright.processes import kept_exit_code, read_identity
from labwright.sidecar.monitor import Monitor
from labwright.sidecar.record import RunRecord, load_spec

_LAST_WORDS = "The process that logged it ended without saying how: it was killed, or left by os._exit."


def watch_external(run_dir: str) -> None:
    paths = RunPaths(run_dir)
    spec = load_spec(paths)
    record = RunRecord(paths, spec["run"]["id"], spec["sidecar"]["wake"])
    process = read_identity(paths.claim(1))
    if process is None:
        return  # it was taken back: the request had been answered before
    Monitor(paths, spec, record, os.path.getmtime(paths.spec), process=process).watch_process()
    facts = _end_facts(paths, record)
    if facts["status"] in ("failed", "lost") and spec["sidecar"].get("alerts", {}).get("builtin", {}).get("exit", True):
        record.event("alert", rule="exit", message=facts["error"], severity="critical", choices=["ignore", "rerun"])
    record.wake_server("events")


def _end_facts(paths: RunPaths, record: RunRecord) -> dict[str, Any]:
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
