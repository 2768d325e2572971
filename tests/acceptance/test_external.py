"""A script started by hand is watched like any run: its metrics, its resource use and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.support.children import end_with_test
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

# On a busy machine a server may respond later than a training should wait.
PATIENT = "import labwright.sdk.places\nlabwright.sdk.places._TIMEOUT_SECONDS = 60\n"
HEAD = f"import labwright, os, sys, time\n{PATIENT}labwright.init()\n"


def start(server: LiveServer, code: str) -> subprocess.Popen[bytes]:
    """Start the script in a bare interpreter that finds the SDK where the how-to says."""
    script = server.project / "by_hand.py"
    script.write_text(HEAD + code)
    python = sys._base_executable  # type: ignore[attr-defined]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(server.project / ".labwright" / "pythonpath")}
    return end_with_test(
        subprocess.Popen([python, "-s", str(script)], cwd=server.project, env=environment, stderr=subprocess.DEVNULL)
    )


def run_of(server: LiveServer) -> dict[str, Any]:
    return wait_until(lambda: server.get("/runs"), "the run")[0]  # type: ignore[no-any-return]


def alerts(server: LiveServer, run_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get(f"/alerts?run_id={run_id}")
    return found


def test_metrics_and_resource_use_are_watched(server: LiveServer) -> None:
    process = start(server, "for step in range(9): labwright.log({'loss': float('nan')}, step=step)\ntime.sleep(60)")
    try:
        run = run_of(server)
        wait_until(lambda: [a for a in alerts(server, run["id"]) if a["rule"] == "nan_or_inf"], "the alert")
        wait_until(
            lambda: "system/memory_mb" in server.get(f"/runs/{run['id']}/metrics")["keys"],
            "what it takes of the machine",
        )
    finally:
        process.kill()
        process.wait()
    ended = server.wait_for_end(run["id"])
    assert (ended["status"], ended["exit_code"]) == ("lost", None)
    [told] = wait_until(lambda: [a for a in alerts(server, run["id"]) if a["rule"] == "exit"], "word of its end")
    assert told["severity"] == "critical" and "killed" in told["message"]


@pytest.mark.parametrize(
    ("last_words", "status", "code"),
    [
        ("sys.exit(3)", "failed", 3),
        ("raise SystemExit(4)", "failed", 4),
        ("raise SystemExit(0)", "finished", 0),
        ("1 / 0", "failed", 1),
        ("os._exit(0)", "lost", None),
    ],
)
def test_end_is_recorded_correctly(server: LiveServer, last_words: str, status: str, code: int | None) -> None:
    start(server, f"labwright.log({{'loss': 1.0}})\n{last_words}").wait()
    ended = server.wait_for_end(run_of(server)["id"])
    assert (ended["status"], ended["exit_code"]) == (status, code)
    if status != "finished":
        wait_until(lambda: [a for a in alerts(server, ended["id"]) if a["rule"] == "exit"], "word of its end")


def test_external_run_stopped_on_request_raises_no_alert(server: LiveServer) -> None:
    process = start(server, "time.sleep(60)")
    run = run_of(server)
    wait_until(lambda: server.get(f"/runs/{run['id']}")["snapshot"], "its code to be kept")
    server.post(f"/runs/{run['id']}/stop")
    assert process.wait(timeout=60) == -signal.SIGTERM
    assert server.wait_for_end(run["id"])["status"] == "stopped"
    assert alerts(server, run["id"]) == []


def test_reports_after_the_end_are_accepted(server: LiveServer) -> None:
    start(server, "labwright.log({'loss': 1.0})\nos._exit(0)").wait()
    lost = server.wait_for_status(run_of(server)["id"], "lost")
    late = {"event": "alert", "time": time.time(), "rule": "late", "message": "m", "severity": "info", "choices": []}
    with open(server.state / "runs" / lost["id"] / "events.jsonl", "a") as events:
        events.write(f"{json.dumps(late)}\n")
    server.restart()
    rules = {"exit", "late"}
    wait_until(lambda: rules <= {alert["rule"] for alert in alerts(server, lost["id"])}, "both to be told")
