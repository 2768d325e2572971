"""The command itself: a file run by a fresh bash, with its own session, output and environment."""

from __future__ import annotations

import contextlib
import os
import resource
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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProcess:
    pid: int
    input_path: str  # what is written there reaches the job
    terminal: Terminal | None = None


def start_job(
    command: str, workdir: str, environment: dict[str, str], lease_fds: Iterable[int], output: int | Terminal
) -> JobProcess:
    """`command` is a file. Raises OSError with the reason when it cannot even begin."""
    if isinstance(output, Terminal):
        return _start_on_terminal(command, workdir, environment, lease_fds, output)
    stdin = open_endless_pipe()
    try:
        child = _spawn(command, workdir, environment, lease_fds, stdin, output)
    finally:
        os.close(stdin)
    return JobProcess(pid=child, input_path=f"/proc/{child}/fd/0")


def _start_on_terminal(
    command: str, workdir: str, environment: dict[str, str], lease_fds: Iterable[int], terminal: Terminal
) -> JobProcess:
    variables = {"TERM": "xterm-256color", **environment}
    try:
        child = _spawn(command, workdir, variables, lease_fds, terminal.theirs, terminal.theirs)
    except OSError:
        terminal.close()
        raise
    finally:
        os.close(terminal.theirs)
    return JobProcess(pid=child, input_path=terminal.input_path, terminal=terminal)


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


_LEAVING_SECONDS = 0.5  # a sandbox is gone just after the command that was in it
_LEFTOVER_GRACE_SECONDS = 5.0
_REAP_SECONDS = 0.02


class JobTree:
    """Monitor and relay are the supervisor's children too, and none of the job's."""

    def __init__(self, run_id: str, monitor: MonitorProcess) -> None:
        self._run_id = run_id
        self._monitor = monitor
        self._relay: Relay | None = None
        self._job: int | None = None
        self.status: int | None = None  # how the job itself ended
        self.cpu_seconds = 0.0
        self.max_memory_mb = 0.0

    def begin(self, job: int, relay: Relay | None) -> None:
        self._job, self._relay, self.status = job, relay, None

    def members(self) -> set[int]:
        """All our descendants, and whoever carries the run's id."""
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
                if self._monitor.saw_end(pid, status) or (self._relay and self._relay.saw_end(pid)):
                    continue
                self._add_usage(usage)
                if pid == self._job:
                    self.status = status

    def _add_usage(self, usage: resource.struct_rusage) -> None:
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        self.max_memory_mb = max(self.max_memory_mb, usage.ru_maxrss / 1024)

    def end_leftovers(self, rest: Callable[[float], None]) -> int:
        """What the command left running ends with it; otherwise it would go on untracked. Answers how many those were.

        `rest` sleeps so long and reaps whatever ended.
        """
        if self._all_leave_by_themselves(rest):
            return 0
        return end_tree(self.members, _LEFTOVER_GRACE_SECONDS, self.reap)

    def _all_leave_by_themselves(self, rest: Callable[[float], None]) -> bool:
        deadline = time.monotonic() + _LEAVING_SECONDS
        while set(children_of(os.getpid())) - self._helpers:
            if time.monotonic() >= deadline:
                return False
            rest(_REAP_SECONDS)
        return True


TERMINATED = {"status": "failed", "reason": "terminated", "error": "The sidecar was told to end (SIGTERM)."}


def facts_of_status(status: int) -> dict[str, Any]:
    if not os.WIFSIGNALED(status):
        return _facts_of_code(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    return {"exit_code": 128 + number, "signal": number, "error": _signal_words(number)}


def is_by_term(status: int) -> bool:
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGTERM
    return os.WEXITSTATUS(status) == 128 + signal.SIGTERM


def end_facts(
    told: str, exit_code: int, reason_to_stop: Callable[[], str], time_limit_seconds: float | None
) -> dict[str, Any]:
    """`told`: why it was ended, if it did not end by itself."""
    if told == "stop":
        return {"status": "stopped", "reason": reason_to_stop() or "stopped on request"}
    if told == "terminated":
        return dict(TERMINATED)
    if told == "time_limit":
        error = f"Time limit of {time_limit_seconds:g} s reached."
        return {"status": "failed", "reason": "time_limit", "error": error}
    return {"status": "failed" if exit_code else "finished", "reason": "exit_code" if exit_code else ""}


def _facts_of_code(code: int) -> dict[str, Any]:
    if 128 < code <= 128 + signal.NSIG:
        number = code - 128
        return {
            "exit_code": code,
            "signal": number,
            "error": f"{_signal_words(number)}, as the shell reports it",
        }
    return {"exit_code": code, "signal": None, "error": f"Exit code {code}" if code else None}


def _signal_words(number: int) -> str:
    try:
        return f"Signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"Signal {number}"
