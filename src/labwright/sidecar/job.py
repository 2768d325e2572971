"""The command itself: a file run by a fresh bash, with its own session, output and environment."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from labwright.files import read_json
from labwright.paths import RunPaths
from labwright.processes import RUN_ID_VARIABLE
from labwright.sidecar.slurm import environment_on_node
from labwright.sidecar.terminal import Terminal, open_endless_pipe, take_terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    pid: int
    input_path: str  # what is written there reaches the job
    terminal: Terminal | None = None


def start_job(
    command: str, workdir: str, environment: dict[str, str], lease_fds: Iterable[int], output: int | Terminal
) -> Job:
    """`command` is a file. Raises OSError with the reason when it cannot even begin."""
    if isinstance(output, Terminal):
        return _start_on_terminal(command, workdir, environment, lease_fds, output)
    stdin = open_endless_pipe()
    try:
        child = _spawn(command, workdir, environment, lease_fds, stdin, output)
    finally:
        os.close(stdin)
    return Job(pid=child, input_path=f"/proc/{child}/fd/0")


def _start_on_terminal(
    command: str, workdir: str, environment: dict[str, str], lease_fds: Iterable[int], terminal: Terminal
) -> Job:
    variables = {"TERM": "xterm-256color", **environment}
    try:
        child = _spawn(command, workdir, variables, lease_fds, terminal.theirs, terminal.theirs)
    except OSError:
        terminal.close()
        raise
    finally:
        os.close(terminal.theirs)
    return Job(pid=child, input_path=terminal.input_path, terminal=terminal)


def _spawn(
    command: str,
    workdir: str,
    environment: dict[str, str],
    lease_fds: Iterable[int],
    stdin: int,
    output: int,
) -> int:
    bash = shutil.which("bash", path=environment.get("PATH", os.defpath)) or "/bin/bash"
    process = subprocess.Popen(
        [bash, command],
        cwd=workdir,
        env=environment,
        stdin=stdin,
        stdout=output,
        stderr=output,
        start_new_session=True,
        pass_fds=tuple(lease_fds),
        preexec_fn=_on_terminal if os.isatty(stdin) else None,
    )
    process.returncode = 0  # the supervisor reaps all its children itself
    return process.pid


def _on_terminal() -> None:
    take_terminal()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def job_environment(paths: RunPaths, spec: dict[str, Any], inherited: dict[str, str]) -> dict[str, str]:
    """The caller's environment, or the one the server was started in, plus what the run sets and what we promise."""
    stored = read_json(paths.env)
    if spec["sidecar"].get("slurm"):
        environment = environment_on_node(stored["variables"], inherited)
    else:
        environment = dict(stored["variables"]) if stored["base"] == "caller" else dict(inherited)
    environment.update(spec["run"]["env"])
    environment.update(_secrets(paths, keep=bool(spec["sidecar"].get("slurm"))))
    environment.update(
        {
            RUN_ID_VARIABLE: spec["run"]["id"],
            "LABWRIGHT_RUN_DIR": paths.dir,
            "LABWRIGHT_ATTEMPT": str(spec["run"]["attempt"]),
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": _python_path(spec["sidecar"]["python_path"], environment),
        }
    )
    return environment


def _python_path(ours: str, environment: dict[str, str]) -> str:
    """The small folder that holds the SDK, before whatever the user has there."""
    return os.pathsep.join(filter(None, (ours, environment.get("PYTHONPATH"))))


def _secrets(paths: RunPaths, *, keep: bool) -> dict[str, str]:
    """Gone as soon as they are read; but a job that Slurm may start again needs them again."""
    try:
        secrets: dict[str, str] = read_json(paths.secrets)
    except FileNotFoundError:
        return {}
    if not keep:
        os.unlink(paths.secrets)
    return secrets
