"""The job of a run: how its command is started, which processes belong to it, and how it ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from labwright.files import read_json
from labwright.paths import RunPaths
from labwright.processes import RUN_ID_VARIABLE, children_of, descendants_of, end_tree, processes_of_run
from labwright.sidecar.monitor import MonitorProcess
from labwright.sidecar.relay import Relay
from labwright.sidecar.slurm import environment_on_node
from labwright.sidecar.terminal import Terminal, open_endless_pipe, take_terminal

TERMINATED = {"status": "failed", "reason": "terminated", "error": "The sidecar received SIGTERM."}
_LEAVING_SECONDS = 0.5  # a sandbox ends shortly after the command inside it
_LEFTOVER_GRACE_SECONDS = 5.0
_REAP_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProcess:
    pid: int
    input_path: str  # bytes written there reach the job
    terminal: Terminal | None = None


def start_job(
    command: str, workdir: str, environment: dict[str, str], lease_fds: Iterable[int], output: int | Terminal
) -> JobProcess:
    """Start the file `command` with bash in a session of its own. Raise OSError if it cannot be started."""
    if isinstance(output, Terminal):
        variables = {"TERM": "xterm-256color", **environment}
        try:
            child = _spawn(command, workdir, variables, lease_fds, output.theirs, output.theirs)
        except OSError:
            output.close()
            raise
        finally:
            os.close(output.theirs)
        return JobProcess(pid=child, input_path=output.input_path, terminal=output)
    stdin = open_endless_pipe()
    try:
        child = _spawn(command, workdir, environment, lease_fds, stdin, output)
    finally:
        os.close(stdin)
    return JobProcess(pid=child, input_path=f"/proc/{child}/fd/0")


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
    """Return the job's environment: the caller's or the server's, then the run's variables and secrets, then ours."""
    stored = read_json(paths.env)
    on_slurm = bool(spec["sidecar"].get("slurm"))
    if on_slurm:
        environment = environment_on_node(stored["variables"], inherited)
    else:
        environment = dict(stored["variables"]) if stored["base"] == "caller" else dict(inherited)
    environment.update(spec["run"]["env"])
    environment.update(_secrets(paths, keep=on_slurm))
    # The small SDK folder comes before the user's own PYTHONPATH.
    python_path = os.pathsep.join(filter(None, (spec["sidecar"]["python_path"], environment.get("PYTHONPATH"))))
    environment.update(
        {
            RUN_ID_VARIABLE: spec["run"]["id"],
            "LABWRIGHT_RUN_DIR": paths.dir,
            "LABWRIGHT_ATTEMPT": str(spec["run"]["attempt"]),
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": python_path,
        }
    )
    return environment


def _secrets(paths: RunPaths, *, keep: bool) -> dict[str, str]:
    """Read the secrets and delete their file. With `keep` it stays, for a job that Slurm may start again."""
    try:
        secrets: dict[str, str] = read_json(paths.secrets)
    except FileNotFoundError:
        return {}
    if not keep:
        os.unlink(paths.secrets)
    return secrets


class JobTree:
    """The processes of a job: which are left, how the job ended, and the CPU and memory that ended ones used.

    The monitor and the relay are children of the supervisor too, but do not belong to the job.
    """

    def __init__(self, run_id: str, monitor: MonitorProcess) -> None:
        self._run_id = run_id
        self._monitor = monitor
        self._relay: Relay | None = None
        self._job: int | None = None
        self.status: int | None = None  # wait status of the job itself, once it has ended
        self.cpu_seconds = 0.0
        self.max_memory_mb = 0.0

    def follow(self, job: int, relay: Relay | None) -> None:
        self._job, self._relay, self.status = job, relay, None

    def members(self) -> set[int]:
        """Return all our descendants and all processes that carry the run's id."""
        tree = descendants_of(os.getpid()) | processes_of_run(self._run_id)
        return tree - {os.getpid(), *self._helpers}

    @property
    def _helpers(self) -> set[int]:
        return {pid for pid in (self._monitor.pid, self._relay and self._relay.pid) if pid}

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self._monitor.note_end(pid, status) or (self._relay and self._relay.note_end(pid)):
                    continue
                self.cpu_seconds += usage.ru_utime + usage.ru_stime
                self.max_memory_mb = max(self.max_memory_mb, usage.ru_maxrss / 1024)
                if pid == self._job:
                    self.status = status

    def end_leftovers(self, sleep_and_reap: Callable[[float], None]) -> int:
        """End the processes that the command left running. Return how many had to be ended."""
        deadline = time.monotonic() + _LEAVING_SECONDS
        while set(children_of(os.getpid())) - self._helpers:
            if time.monotonic() >= deadline:
                return end_tree(self.members, _LEFTOVER_GRACE_SECONDS, self.reap)
            sleep_and_reap(_REAP_SECONDS)
        return 0


def facts_of_status(status: int) -> dict[str, Any]:
    """Return exit code, signal and error message for a wait status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return {"exit_code": 128 + number, "signal": number, "error": _signal_text(number)}
    code = os.WEXITSTATUS(status)
    if 128 < code <= 128 + signal.NSIG:
        number = code - 128
        return {"exit_code": code, "signal": number, "error": f"{_signal_text(number)}, as the shell reports it"}
    return {"exit_code": code, "signal": None, "error": f"Exit code {code}" if code else None}


def _signal_text(number: int) -> str:
    try:
        return f"Signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"Signal {number}"


def is_by_term(status: int) -> bool:
    """Return whether SIGTERM ended the process, directly or as reported by a shell."""
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGTERM
    return os.WEXITSTATUS(status) == 128 + signal.SIGTERM


def end_facts(
    stopped_by: str, exit_code: int, stop_reason: Callable[[], str], time_limit_seconds: float | None
) -> dict[str, Any]:
    """Return status and reason. `stopped_by` says why we ended the job; empty if it ended by itself."""
    if stopped_by == "stop":
        return {"status": "stopped", "reason": stop_reason() or "stopped on request"}
    if stopped_by == "terminated":
        return dict(TERMINATED)
    if stopped_by == "time_limit":
        error = f"Time limit of {time_limit_seconds:g} s reached."
        return {"status": "failed", "reason": "time_limit", "error": error}
    return {"status": "failed" if exit_code else "finished", "reason": "exit_code" if exit_code else ""}
