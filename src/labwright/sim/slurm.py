"""A small private Slurm on this machine: munged, slurmctld and one slurmd per node, in one folder, on loopback.

The scheduler is real; only the nodes and their GPUs are simulated. Nothing outside the folder is changed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labwright.domain.errors import Invalid, LabwrightError
from labwright.processes import all_pids, parent_of, send_signal, start_time
from labwright.sim.slurm_config import Layout, Timers, free_ports, slurm_conf

_PROGRAMS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sinfo": "slurm-wlm", "munged": "munge"}
_DAEMON_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"  # not on everybody's PATH
_READY_SECONDS = 30.0
_END_SECONDS = 5.0
_SAVE_SECONDS = 60.0  # on a busy machine the controller waits long before it saves its state
_START_TRIES = 3  # a port that was free when it was chosen may be taken a moment later


class SlurmDidNotStart(LabwrightError):
    """The simulated Slurm did not start."""

    code = "sim_slurm"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSize:
    nodes: int = 3
    gpus: int = 2


class SimulatedSlurm:
    """All of its state is in its folder, so any process can stop or start a part of it."""

    def __init__(self, folder: Path) -> None:
        self.layout = Layout(folder)

    @classmethod
    def start(cls, folder: Path, size: SlurmSize, timers: Timers | None = None) -> SimulatedSlurm:
        check_programs()
        for tries_left in reversed(range(_START_TRIES)):
            made = cls(folder)
            made._prepare(size, timers or Timers())
            try:
                made._start_all()
            except SlurmDidNotStart:
                made.stop()
                if not tries_left:
                    raise
            else:
                return made
        raise AssertionError("unreachable")

    @property
    def conf(self) -> Path:
        return self.layout.conf

    @property
    def nodes(self) -> list[str]:
        return self.layout.nodes.read_text().split()

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        return {**base, "SLURM_CONF": str(self.conf)}

    def client(self, *argv: str, timeout: float = 20.0) -> str:
        """Return the output of a Slurm command. Raises SlurmDidNotStart if it fails."""
        done = subprocess.run(
            argv, env=self._environment(), capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode:
            raise SlurmDidNotStart(f"{argv[0]} failed: {done.stderr.strip()}")
        return done.stdout

    def start_controller(self) -> None:
        self._daemon("slurmctld")

    def restart_controller(self) -> None:
        """Restart the controller as an administrator does: it saves its state first."""
        _end(self.layout.pid_file("slurmctld"), signal.SIGTERM, _SAVE_SECONDS)
        self.start_controller()

    def kill_controller(self) -> None:
        """Kill the controller. It forgets its last changes, takes running jobs for new ones, and drains their nodes."""
        _end(self.layout.pid_file("slurmctld"), signal.SIGKILL)

    def start_node(self, name: str) -> None:
        self._daemon("slurmd", "-N", name)

    def kill_node(self, name: str) -> None:
        """Kill only the slurmd, as a crash does: jobs on the node continue."""
        _end(self.layout.pid_file(f"slurmd-{name}"), signal.SIGKILL)

    def lose_node(self, name: str) -> None:
        """Kill slurmd and everything that it started, as if the machine were switched off."""
        self.kill_node(name)
        jobs = self._processes(f"SLURMD_NODENAME={name}")
        steps = {parent for pid in jobs if (parent := parent_of(pid)) and _name_of(parent) == "slurmstepd"}
        for pid in (*steps, *jobs):  # the steps first: they would report to the controller
            send_signal(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill the jobs first: slurmstepd would wait for them and outlive its slurmd."""
        for pid in self._job_processes():
            send_signal(pid, signal.SIGKILL)
        for name in (*(f"slurmd-{node}" for node in self.nodes), "slurmctld", "munged"):
            _end(self.layout.pid_file(name), signal.SIGTERM)
        for pid in self._job_processes():  # started meanwhile
            send_signal(pid, signal.SIGKILL)

    def _prepare(self, size: SlurmSize, timers: Timers) -> None:
        self.layout.make_folders()
        key = self.layout.munge / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        names = [f"node{number}" for number in range(1, size.nodes + 1)]
        self.layout.nodes.write_text("\n".join(names))
        self.layout.write_gres(names, size.gpus)
        self.layout.write_cgroup(_version())
        self.conf.write_text(slurm_conf(self.layout, names, size.gpus, free_ports(size.nodes + 1), timers))
        self.layout.write_daemons_conf()

    def _start_all(self) -> None:
        munge = self.layout.munge
        self._run(
            "munged",
            "--force",  # else it refuses a folder below a temporary one
            f"--key-file={munge / 'key'}",
            f"--socket={self.layout.munge_socket}",
            f"--pid-file={self.layout.pid_file('munged')}",
            f"--log-file={munge / 'munged.log'}",
            f"--seed-file={munge / 'seed'}",
        )
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while self._ready_nodes() < set(self.nodes):
            if time.monotonic() > deadline or not _is_up(self.layout.pid_file("slurmctld")):
                raise SlurmDidNotStart(f"Slurm did not start: {self.layout.last_error()}")
            time.sleep(0.05)

    def _ready_nodes(self) -> set[str]:
        try:
            said = self.client("sinfo", "-h", "-N", "-t", "idle,mix,alloc", "-o", "%N", timeout=5)
        except (SlurmDidNotStart, subprocess.TimeoutExpired):
            return set()
        return set(said.split())

    def _daemon(self, program: str, *arguments: str) -> None:
        """Start a daemon and wait until it is up. It goes into the background by itself."""
        self._run(program, "-f", str(self.layout.daemons_conf), *arguments)
        name = f"slurmd-{arguments[-1]}" if arguments else program
        deadline = time.monotonic() + _END_SECONDS
        while not _is_up(self.layout.pid_file(name)) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _run(self, program: str, *arguments: str) -> None:
        path = which(program)
        assert path is not None
        with open(self.layout.logs / f"{program}.start", "ab") as log:
            subprocess.run([path, *arguments], env=self._environment(), stdout=log, stderr=log, check=False)

    def _environment(self) -> dict[str, str]:
        return self.environment({name: value for name, value in os.environ.items() if not name.startswith("SLURM_")})

    def _job_processes(self) -> set[int]:
        """Return slurmstepd processes and what they started, which has our folder and a job id in its environment."""
        jobs = {pid for pid in self._processes() if _environment_has(pid, b"SLURM_JOB_ID=")}
        steps = {pid for pid in all_pids() if _name_of(pid) == "slurmstepd"}
        return jobs | (steps & self._processes()) | {pid for pid in steps if self._works_in_folder(pid)}

    def _works_in_folder(self, pid: int) -> bool:
        """Check the working folder: a newer slurmstepd overwrites its environment with its title."""
        try:
            return Path(os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)")).is_relative_to(self.layout.folder)
        except OSError:  # it ended meanwhile, or it is somebody else's
            return False

    def _processes(self, also: str = "") -> set[int]:
        marks = [f"SLURM_CONF={self.layout.folder}/".encode(), *([also.encode()] if also else [])]
        own = {os.getpid(), os.getppid()}
        return {pid for pid in all_pids() if all(_environment_has(pid, mark) for mark in marks)} - own


def which(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{_DAEMON_FOLDERS}")


def check_programs() -> None:
    missing = sorted({package for program, package in _PROGRAMS.items() if which(program) is None})
    if missing:
        raise Invalid(
            f"A simulated Slurm needs {' and '.join(missing)}, which this machine does not have.",
            hint=f"Install it, e.g. apt-get install --no-install-recommends {' '.join(missing)}",
        )


def _version() -> tuple[int, ...]:
    """Parse "slurm-wlm 24.11.5", which slurmd prints without a cluster."""
    said = subprocess.run([str(which("slurmd")), "-V"], capture_output=True, text=True, check=False).stdout
    return tuple(int(number) for number in re.findall(r"\d+", said)[:2])


@contextlib.contextmanager
def simulated_slurm(size: SlurmSize, timers: Timers | None = None) -> Iterator[SimulatedSlurm]:
    """Run a Slurm until the end of the block. A cleaner process removes it even if this process is killed."""
    check_programs()
    folder = Path(tempfile.mkdtemp(prefix="labwright-slurm-"))  # short: a socket's path has 107 characters
    folder.chmod(0o755)
    cleaner = _start_cleaner(folder)
    try:
        yield SimulatedSlurm.start(folder, size, timers)
    finally:
        assert cleaner.stdin is not None
        cleaner.stdin.close()
        cleaner.wait()


def _start_cleaner(folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that waits for the end of its input, which comes when we end, and then removes Slurm."""
    return subprocess.Popen(
        [sys.executable, "-m", "labwright.sim.slurm", str(folder)], stdin=subprocess.PIPE, start_new_session=True
    )


def clean_up_at_end(folder: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    simulated = SimulatedSlurm(folder)
    if simulated.layout.nodes.exists():
        simulated.stop()
    shutil.rmtree(folder, ignore_errors=True)  # a daemon that is just ending may still write


def run_with_slurm(size: SlurmSize, argv: Sequence[str]) -> int:
    """Run a command with the cluster. Without a command, print how to reach it and wait for a signal."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with simulated_slurm(size) as cluster:
        if argv:
            return _run_command(argv, cluster.environment(os.environ))
        print(f"export SLURM_CONF={cluster.conf}", flush=True)
        print(f"Slurm with {size.nodes} nodes of {size.gpus} GPUs is up; Ctrl-C ends it.", file=sys.stderr, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


def _run_command(argv: Sequence[str], environment: dict[str, str]) -> int:
    try:
        code = subprocess.run(argv, env=environment, check=False).returncode
    except KeyboardInterrupt:  # the command got the signal too, and has ended
        return 128 + signal.SIGINT
    except (FileNotFoundError, PermissionError) as error:
        raise Invalid(f"{argv[0]} cannot be started: {error.strerror}.") from error
    return 128 - code if code < 0 else code


def _end(pid_file: Path, number: int, patience: float = _END_SECONDS) -> None:
    """Signal a daemon and wait until it has ended. One that ignores TERM is killed."""
    deadline = time.monotonic() + patience
    while (pid := _pid_in(pid_file)) and start_time(pid) is not None:
        send_signal(pid, number if time.monotonic() < deadline else signal.SIGKILL)
        time.sleep(0.05)


def _is_up(pid_file: Path) -> bool:
    pid = _pid_in(pid_file)
    return pid is not None and start_time(pid) is not None


def _pid_in(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text())
    except (FileNotFoundError, ValueError):  # not written yet, or removed by a daemon that ended properly
        return None


def _environment_has(pid: int, beginning: bytes) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile, or it is somebody else's
        return False
    return any(variable.startswith(beginning) for variable in variables)


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    clean_up_at_end(Path(sys.argv[1]))
