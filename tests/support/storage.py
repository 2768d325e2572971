"""Server starts that must fail, databases that disappear, and facts that must survive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.live_server import LiveServer

AS_ANY_USER = "-dac_override,-dac_read_search,-fowner,-chown"  # root, without the capability to ignore file modes


def try_to_start(
    server: LiveServer, *options: str, before: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Start a server that must fail: it ends by itself, with a message and no traceback."""
    command = [*(before or []), sys.executable, "-m", "labwright.server", "--project", str(server.project), *options]
    done = subprocess.run(
        command, env=server.environment, capture_output=True, text=True, timeout=60, check=False, cwd="/"
    )
    assert done.returncode > 0, done
    assert done.stderr.startswith("error: "), done.stderr
    assert "Traceback" not in done.stderr
    return done


def remove_database(server: LiveServer) -> None:
    for path in server.state.glob("labwright.db*"):
        path.unlink()


def gate(server: LiveServer, name: str) -> str:
    return f"until [ -e '{server.project}/{name}' ]; do sleep 0.02; done"


def ending(run: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("status", "status_reason", "exit_code", "signal", "attempt"))


def facts(run: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that a rebuild must restore, whatever the run does meanwhile."""
    kept = (
        "id",
        "name",
        "command",
        "workdir",
        "sweep_id",
        "created_at",
        "created_by",
        "params",
        "seed",
        "after",
        "env",
    )
    return {name: run[name] for name in (*kept, "tags", "notes", "priority", "parent_run_id", "gpus", "archived")}


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast
