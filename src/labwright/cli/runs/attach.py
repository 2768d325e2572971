"""`attach`: open a run's tmux window. Without tmux, print its output and pass typed lines on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from typing import Any

import typer

from labwright.cli.command import INTERRUPTED, with_client
from labwright.cli.references import LastRun
from labwright.cli.runs.logs import print_until_end
from labwright.cli.screen import Screen, note
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict
from labwright.domain.run import RunStatus
from labwright.paths import RunPaths
from labwright.settings import load_settings

Json = dict[str, Any]
_WINDOW_SECONDS = 4.0  # a window opens a moment after its run
_POLL_SECONDS = 0.1
_PLACEHOLDER_SECONDS = 5  # a new session needs a window; this one is replaced at once
_REPLAYED_BYTES = 200_000


@with_client
def attach(screen: Screen, client: LabClient, run: LastRun = "last") -> None:
    """Ctrl-b d detaches; the run continues. Ctrl-C is sent to the run."""
    found = _with_window(client, client.run(run))
    if screen.as_json:
        screen.json({"run_id": found["id"], "tmux_target": found["tmux_target"], "run_dir": found["run_dir"]})
        return
    if found["tmux_target"] and shutil.which("tmux") and _window_exists(found["tmux_target"]):
        _enter_tmux(found)
    _follow_and_type(screen, client, found)


def _with_window(client: LabClient, run: Json) -> Json:
    """Return the run when it has a window, or as it is if it will not get one."""
    deadline = time.monotonic() + _WINDOW_SECONDS
    while True:
        if run["status"] != RunStatus.RUNNING:
            raise Conflict(
                f"Run {run['id']} is {run['status']}; you can only attach to a running run.",
                hint=f"See its output with: labwright logs {'' if run['ended_at'] else '-f '}{run['id']}",
            )
        expected = shutil.which("tmux") and load_settings(client.paths.project).tmux
        if run["tmux_target"] or not expected or time.monotonic() > deadline:
            return run
        time.sleep(_POLL_SECONDS)
        run = client.run(run["id"])


def _window_exists(target: str) -> bool:
    """Return whether tmux still has the window. The run does not depend on it."""
    session = target.partition(":")[0]
    command = ["tmux", "-L", session, "list-panes", "-t", target]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _enter_tmux(run: Json) -> None:
    """Replace this process by tmux. TMUX is removed, because this is not the tmux that we may be in."""
    environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
    note("Ctrl-b d detaches; the run continues.")
    socket = run["tmux_target"].partition(":")[0]
    arguments = ["tmux", "-L", socket, *own_session(f"attach-{run['id']}-{os.getpid()}", run["tmux_target"])]
    os.execvpe("tmux", arguments, environment)  # noqa: S606


def own_session(name: str, target: str) -> list[str]:
    """Return tmux commands that open one window in a new session, which ends with the window or when it is detached.

    Terminals in a shared session share the current window; when that closes, keys would reach another run."""
    return [
        *("new-session", "-s", name, "--", "sleep", str(_PLACEHOLDER_SECONDS), ";"),
        *("link-window", "-k", "-s", target, "-t", f"={name}:0", ";"),
        *("set-option", "-t", f"={name}:", "destroy-unattached", "on"),
    ]


def _follow_and_type(screen: Screen, client: LabClient, run: Json) -> None:
    note("No tmux window: showing the output. Typed lines are sent to the run. Ctrl-C detaches; the run continues.")
    threading.Thread(target=_forward_lines, args=(RunPaths(run["run_dir"]).stdin,), daemon=True).start()
    start = client.logs(run["id"], offset=-_REPLAYED_BYTES, limit=1)["offset"]
    try:
        print_until_end(screen, client, run["id"], start)
    except KeyboardInterrupt:
        note(f"\n{run['id']} continues.")
        raise typer.Exit(INTERRUPTED) from None


def _forward_lines(fifo: str) -> None:
    """Send typed lines to the run's FIFO, once it exists. Opening it for reading too does not wait for a reader."""
    while not os.path.exists(fifo):
        time.sleep(_POLL_SECONDS)
    with open(os.open(fifo, os.O_RDWR | os.O_CLOEXEC), "w", buffering=1) as job:
        for line in sys.stdin:
            job.write(line)
            job.flush()
