"""Sweeps of quick commands that log one number, and ways to wait for their end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

METRIC = {"key": "loss", "goal": "min"}


def logs(expression: str) -> str:
    """Return a command that logs a formula of the sweep's parameters."""
    return f"""awk 'BEGIN {{ printf "{{\\"loss\\": %.9f}}\\n", {expression} }}'"""


def make_sweep(server: LiveServer, **fields: Any) -> dict[str, Any]:
    wanted = {"name": "a sweep", "metric": METRIC, "auto_start": True, **fields}
    made: dict[str, Any] = server.post("/sweeps", wanted)
    return made


def sweep_when(server: LiveServer, sweep_id: str, *statuses: str, timeout: float = 60.0) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        sweep: dict[str, Any] = server.get(f"/sweeps/{sweep_id}")
        return sweep if sweep["status"] in statuses else None

    return wait_until(reached, f"{sweep_id} to be {statuses}", timeout)


def runs_of(server: LiveServer, sweep_id: str) -> list[dict[str, Any]]:
    """Return the runs in order of creation."""
    found: list[dict[str, Any]] = server.get(f"/runs?sweep_id={sweep_id}&limit=1000&sort=created_at")
    return found


def alerts_of(server: LiveServer, sweep_id: str, status: str = "pending") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get(f"/alerts?sweep_id={sweep_id}&status={status}")
    return found


def gate(server: LiveServer, name: str) -> str:
    return f"until [ -e '{server.project}/{name}' ]; do sleep 0.02; done"


@contextmanager
def sweep_server(folder: Path) -> Iterator[LiveServer]:
    project = folder / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="4", LABWRIGHT_GRACE_SECONDS="1").start()
    yield server
    for sweep in server.get("/sweeps"):
        server.call("POST", f"/sweeps/{sweep['id']}/stop")
    server.stop()
