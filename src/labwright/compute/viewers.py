"""A tmux window per run that shows its output and passes keys on. It is only a viewer: killing tmux ends no job."""

from __future__ import annotations

import hashlib
import logging
import queue
import shutil
import subprocess
import threading
import time
from pathlib import Path

from labwright.compute.lab import Lab
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import epoch_seconds
from labwright.domain.errors import LabwrightError
from labwright.domain.run import Run, RunStatus
from labwright.store import runs

log = logging.getLogger(__name__)
_SCRIPT = Path(__file__).with_name("viewer.sh")
_OPEN_AFTER_SECONDS = 0.3  # shorter runs end before anybody could watch
_TMUX_TIMEOUT_SECONDS = 5.0


class Viewers:
    """Opens windows in its own thread: a tmux that hangs must not delay the engine."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.session = session_name(lab.paths.project)
        self._todo: queue.Queue[Run | None] = queue.Queue()
        self._seen: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="viewers", daemon=True)
        self._usable = lab.settings.tmux and shutil.which("tmux") is not None

    def start(self) -> None:
        if self._usable:
            self._thread.start()

    def close(self) -> None:
        if self._usable:
            self._todo.put(None)
            self._thread.join(timeout=_TMUX_TIMEOUT_SECONDS)

    def open_for(self, running: list[Run]) -> None:
        if not self._usable:
            return
        for run in running:
            if run.id not in self._seen and run.started_at and _age(run) >= _OPEN_AFTER_SECONDS:
                self._seen.add(run.id)
                self._todo.put(run)
        self._seen &= {run.id for run in running}

    def _work(self) -> None:
        while (run := self._todo.get()) is not None:
            try:
                self._open(run)
            except (OSError, subprocess.SubprocessError, LabwrightError) as error:
                log.warning("No tmux window for %s: %s", run.id, error)

    def _open(self, run: Run) -> None:
        if run.id not in self._windows():
            open_window(self.session, run)
        target = f"{self.session}:{run.id}"
        if run.tmux_target != target:
            with self._lab.db.transaction() as tx:
                current = runs.get(tx.connection, run.id)
                if current.status is RunStatus.RUNNING:
                    runs.change(tx, current, current.evolve(tmux_target=target), str(SYSTEM))

    def _windows(self) -> set[str]:
        answer = tmux(self.session, "list-windows", "-t", f"={self.session}:", "-F", "#{window_name}", check=False)
        return set(answer.stdout.split())


def session_name(project: Path) -> str:
    """Return the tmux socket and session of a project, which are separate from the user's own tmux."""
    return f"labwright-{hashlib.sha256(str(project).encode()).hexdigest()[:8]}"


def viewer_command(run: Run) -> list[str]:
    """Return the command that shows a run's output in a terminal and passes on what is typed."""
    return ["sh", str(_SCRIPT), str(run.run_dir), str(run.pid), "tty" if run.tty else "lines"]


def open_window(session: str, run: Run) -> None:
    """Open a window. The arguments go to tmux as a list, not through a shell."""
    viewer = viewer_command(run)
    if tmux(session, "has-session", "-t", f"={session}", check=False).returncode:
        tmux(session, "new-session", "-d", "-s", session, "-n", run.id, "-x", "120", "-y", "40", "--", *viewer)
    else:
        tmux(session, "new-window", "-d", "-t", f"={session}:", "-n", run.id, "--", *viewer)


def tmux(session: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["tmux", "-L", session, "-f", "/dev/null", *arguments],
        capture_output=True,
        text=True,
        timeout=_TMUX_TIMEOUT_SECONDS,
        check=check,
        stdin=subprocess.DEVNULL,
    )


def _age(run: Run) -> float:
    return time.time() - epoch_seconds(run.started_at or run.created_at)
