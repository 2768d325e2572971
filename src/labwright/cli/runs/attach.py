"""`attach`: a run's tmux window; without tmux its output, with typed lines passed on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from typing import Any

import typer

from labwright.cli.options import AsJson, LastRun, Project, connect
from labwright.cli.runs.logs import print_until_end
from labwright.cli.screen import Screen, note
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict
from labwright.domain.run import RunStatus
from labwright.paths import RunPaths
from labwright.settings import load_settings

Json = dict[str, Any]
_WINDOW_SECONDS = 4.0  # a window opens a moment after its run
_LOOK_SECONDS = 0.1
_PLACEHOLDER_SECONDS = 5  # of the window that a new session must begin with; it is replaced at once
_REPLAYED_BYTES = 200_000


def attach(run: LastRun = "last", project: Project = None, as_json: AsJson = False) -> None:
    """Ctrl-b d leaves tmux and the run alone; Ctrl-C goes to the run."""
    screen, client = Screen(as_json=as_json), connect(project)
    found = _with_window(client, client.run(run))
    if as_json:
        screen.json({"run_id": found["id"], "tmux_target": found["tmux_target"], "run_dir": found["run_dir"]})
        return
    if found["tmux_target"] and shutil.which("tmux") and _window_is_there(found["tmux_target"]):
        _enter_tmux(found)
    _follow_and_type(screen, client, found)


def _with_window(client: LabClient, run: Json) -> Json:
    """The run once it has a window, or as it is where none will come."""
    deadline = time.monotonic() + _WINDOW_SECONDS
    while True:
        if run["status"] != RunStatus.RUNNING:
            raise _nothing_to_attach(run)
        expected = shutil.which("tmux") and load_settings(client.paths.project).tmux
        if run["tmux_target"] or not expected or time.monotonic() > deadline:
            return run
        time.sleep(_LOOK_SECONDS)
        run = client.run(run["id"])


def _nothing_to_attach(run: Json) -> Conflict:
    return Conflict(
        f"Run {run['id']} is {run['status']}; only a running one can be attached to.",
        hint=f"See its output with: labwright logs {'' if run['ended_at'] else '-f '}{run['id']}",
    )


def _window_is_there(target: str) -> bool:
    """tmux may have been ended since the window was opened; the run goes on without it."""
    session = target.partition(":")[0]
    asked = ["tmux", "-L", session, "list-panes", "-t", target]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _enter_tmux(run: Json) -> None:
    """Another tmux than the one we may be in, so that one's variable must not be seen."""
    environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
    note("Ctrl-b d leaves; the run goes on.")
    socket = run["tmux_target"].partition(":")[0]
    arguments = ["tmux", "-L", socket, *session_of_its_own(f"attach-{run['id']}-{os.getpid()}", run["tmux_target"])]
    os.execvpe("tmux", arguments, environment)  # noqa: S606


def session_of_its_own(name: str, target: str) -> list[str]:
    """This run's window and no other: in a session with more, all terminals share the current window, and when that
    closes, what is typed reaches the next one. It ends with the window, or when it is left."""
    return [
        *("new-session", "-s", name, "--", "sleep", str(_PLACEHOLDER_SECONDS), ";"),
        *("link-window", "-k", "-s", target, "-t", f"={name}:0", ";"),
        *("set-option", "-t", f"={name}:", "destroy-unattached", "on"),
    ]


def _follow_and_type(screen: Screen, client: LabClient, run: Json) -> None:
    note("No tmux window here: showing the output; typed lines go to the run. Ctrl-C leaves, the run goes on.")
    threading.Thread(target=_pass_lines_on, args=(RunPaths(run["run_dir"]).stdin,), daemon=True).start()
    begin = client.logs(run["id"], offset=-_REPLAYED_BYTES, limit=1)["offset"]
    try:
        print_until_end(screen, client, run["id"], begin)
    except KeyboardInterrupt:
        note(f"\n{run['id']} goes on.")
        raise typer.Exit(130) from None


def _pass_lines_on(fifo: str) -> None:
    """The run offers its input a moment after its start. Opened both ways: opening must not wait for a reader."""
    while not os.path.exists(fifo):
        time.sleep(_LOOK_SECONDS)
    with open(os.open(fifo, os.O_RDWR | os.O_CLOEXEC), "w", buffering=1) as job:
        for line in sys.stdin:
            job.write(line)
            job.flush()
