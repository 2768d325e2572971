"""Start sidecars on this machine. A helper process, started once per server, forks them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from labwright.compute.environment import split_secrets
from labwright.compute.launcher import Launch
from labwright.domain.run import LOCAL, Run
from labwright.files import read_json
from labwright.paths import RunPaths
from labwright.processes import ProcessIdentity, boot_id, send_signal

SIDECAR = Path(__file__).parents[2] / "sidecar" / "__main__.py"


class LocalLauncher:
    name = LOCAL

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.environment = environment
        self.plain_environment, _ = split_secrets(environment)
        self._log = log
        self._lock = threading.Lock()
        self._helper: subprocess.Popen[bytes] | None = None
        self._watchers: dict[str, subprocess.Popen[bytes]] = {}  # run -> the process that watches it

    def withhold(self, names: Iterable[str]) -> None:
        """Remove variables that no run may have and no file may name."""
        for name in names:
            self.environment.pop(name, None)
            self.plain_environment.pop(name, None)

    def launch(self, launches: Sequence[Launch]) -> None:
        requests = ({"run_dir": launch.run.run_dir, "variables": launch.variables} for launch in launches)
        lines = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
        with self._lock:
            if self._helper is None or self._helper.poll() is not None:
                self._helper = self._start_helper()
            try:
                self._send(lines)
            except BrokenPipeError:  # the helper died; if it forked a run already, the claim stops the second sidecar
                self._helper = self._start_helper()
                self._send(lines)

    def _send(self, lines: bytes) -> None:
        assert self._helper is not None and self._helper.stdin is not None
        self._helper.stdin.write(lines)
        self._helper.stdin.flush()

    def _start_helper(self) -> subprocess.Popen[bytes]:
        return self._sidecar("prefork", stdin=subprocess.PIPE)

    def adopt(self, run: Run) -> None:
        """Start a watcher for a job that outlived its supervisor."""
        self._watch("adopt", run)

    def watch_external(self, run: Run) -> None:
        """Start a watcher for a script that was started by hand: it samples metrics, checks rules, reports the end."""
        self._watch("external", run)

    def _watch(self, verb: str, run: Run) -> None:
        """Start one watcher at a time: one that was just started may not have written a heartbeat yet."""
        self._watchers = {name: watcher for name, watcher in self._watchers.items() if watcher.poll() is None}
        if run.id not in self._watchers:
            self._watchers[run.id] = self._sidecar(verb, str(run.run_dir), stdin=subprocess.DEVNULL)

    def _sidecar(self, *arguments: str, stdin: int) -> subprocess.Popen[bytes]:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with open(self._log, "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(SIDECAR), *arguments],
                stdin=stdin,
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd="/",
                start_new_session=True,
            )

    def nudge(self, run: Run) -> None:
        claim = read_claim(RunPaths(run.run_dir or os.devnull), run.attempt)
        if claim and claim.is_here and claim.is_alive:
            # A script that was started by hand does not read our control folder: it can only be terminated.
            send_signal(claim.pid, signal.SIGTERM if run.is_external else signal.SIGUSR1)

    def close(self) -> None:
        with self._lock:
            if self._helper is not None and self._helper.stdin is not None:
                self._helper.stdin.close()
                self._helper.wait(timeout=5)
                self._helper = None


def read_claim(paths: RunPaths, attempt: int) -> ProcessIdentity | None:
    """Return the process that holds an attempt of a run."""
    try:
        return ProcessIdentity.from_dict(read_json(paths.claim(attempt)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):  # damaged: treat it as claimed by a process that is dead
        return ProcessIdentity(pid=0, start_time=-1, boot_id=boot_id(), host=socket.gethostname())
