"""Every file name that Labwright uses. No other module spells one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

STATE_DIR = ".labwright"
CONFIG_FILE = "labwright.toml"
COPY_LISTING = "digest.json"  # the digest beside the files of an approved copy
ARTIFACTS = "artifacts"  # in a run's folder, and the prefix of recorded artifact paths
DEFAULT_LEASE_DIR = "/run/lock/labwright"


def key_file(environ: Mapping[str, str], endpoint: str) -> Path:
    """Return the file with the user's key of an endpoint. The path is fixed, so a project cannot name another file."""
    base = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '~')}/.config"
    return Path(os.path.expanduser(base)) / "labwright" / "keys" / endpoint


class RunPaths:
    """One run's folder: the contract between server and sidecar. Each file has one writer.

    Plain strings, because the sidecar passes them to thousands of `os` calls.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.dir = os.fspath(folder)
        self.spec = f"{self.dir}/spec.json"  # server
        self.command = f"{self.dir}/command.sh"  # server
        self.env = f"{self.dir}/env.json"  # server
        self.secrets = f"{self.dir}/secrets.json"  # server; the supervisor unlinks it
        self.code = f"{self.dir}/code"  # server; only if the snapshot itself is executed
        self.control = f"{self.dir}/control"  # server to sidecar
        self.stop = f"{self.control}/stop"
        self.output = f"{self.dir}/output.log"  # relay: the output of the job
        self.output_gap = f"{self.dir}/output.gap.json"  # monitor: the part that the size limit dropped
        self.output_removed = f"{self.dir}/output.removed"  # server: empty; its mtime is when gc removed the output
        self.stdin = f"{self.dir}/stdin"  # supervisor: a link to the standard input of the job
        self.events = f"{self.dir}/events.jsonl"  # sidecar
        self.heartbeat = f"{self.dir}/heartbeat"  # monitor: its identity; the mtime is its last sign of life
        self.exit = f"{self.dir}/exit.json"  # supervisor
        self.end = f"{self.dir}/end.json"  # server: how the run ended, if no sidecar could record it
        self.exit_code = f"{self.dir}/exit.code"  # written by the C library of a script that was started by hand
        self.metrics = f"{self.dir}/metrics"  # one file per source
        self.held = f"{self.dir}/held"  # server: we told Slurm to hold the job
        self.slurm_log = f"{self.dir}/slurm.log"  # Slurm, or a sidecar that could not start

    def claim(self, attempt: int) -> str:
        return f"{self.dir}/claim" if attempt == 1 else f"{self.dir}/claim.{attempt}"


class ArrayPaths:
    """The folder of a Slurm job array: the run of each task, and Slurm's output."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.dir = os.fspath(folder)
        self.runs = f"{self.dir}/runs.json"

    def log(self, task: int | str) -> str:
        return f"{self.dir}/{task}.log"


class PlanPaths:
    """One plan's folder. Nothing in it refers to paths outside, so it can be moved."""

    def __init__(self, folder: Path) -> None:
        self.dir = folder
        self.manifest = folder / "manifest.yaml"
        self.text = folder / "plan" / "implementation_plan.md"
        self.versions = folder / "versions"
        self.staged = folder / "staged"  # files that the next rename publishes
        self.copies = folder / "copies"  # by digest, read-only
        self.execution = folder / "execution"  # the state of an execution, with inputs and outputs of its steps
        self.results = folder / "results"

    def listing(self, digest: str) -> Path:
        return self.copies / digest / COPY_LISTING

    def version(self, number: int) -> Path:
        return self.versions / f"{number}.json"


class ProjectPaths:
    """A project's state folder."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.state = project / STATE_DIR
        self.config = project / CONFIG_FILE
        self.token = self.state / "token"
        self.sign_in = self.state / "sign-in.html"
        self.server = self.state / "server.json"
        self.lock = self.state / "server.lock"
        self.port = self.state / "port"
        self.database_pointer = self.state / "database.path"
        self.journal = self.state / "journal.jsonl"
        self.reserve = self.state / "reserve"  # reserved disk space for cleaning up when the disk is full
        self.gpu_history = self.state / "gpu-history.jsonl"
        self.runs = self.state / "runs"
        self.sweeps = self.state / "sweeps"
        self.wild = self.state / "wild"
        self.arrays = self.state / "arrays"
        self.plans = self.state / "plans"
        self.skills = self.state / "skills"
        self.channels = self.state / "channels"  # notification addresses that were set over HTTP
        self.headers = self.state / "headers"  # tokens for `curl -H @file`
        self.shells = self.state / "shells"  # per conversation: the last command that it started
        self.snapshots = self.state / "snapshots"
        self.rehearsals = self.state / "rehearsals"  # temporary copies of the project
        self.python_path = self.state / "pythonpath"  # the package that `import labwright` finds inside a run
        self.metric_claims = self.state / "metric-claims"  # sidecars: which run reads which file of a working directory
        self.unread_metrics = self.state / "unread-metrics"  # one empty file per run; see compute/unread_metrics.py
        self.secrets = self.state / "secrets"
        self.environments = self.state / "environments"
        self.spending = self.state / "spending.jsonl"  # one line per call of a language model
        self.logs = self.state / "logs"
        self.backups = self.state / "backups"
        self.restored = self.state / "restored.json"  # the backup used, until the first start after a restore
        self.restoring = project / f"{STATE_DIR}.restoring"  # an incomplete restored state folder

    @property
    def database(self) -> Path:
        """In the state folder, or at the pointer's path if the project is on a network file system."""
        if self.database_pointer.exists():
            return Path(self.database_pointer.read_text().partition("\n")[0])
        return self.state / "labwright.db"

    @property
    def wake(self) -> Path:
        """Next to the database: few network file systems support FIFOs, and none across machines."""
        return self.database.with_name("wake")

    @property
    def server_log(self) -> Path:
        return self.logs / "server.log"

    def run(self, run_id: str) -> RunPaths:
        return RunPaths(self.runs / run_id)

    def array(self, array_id: str) -> ArrayPaths:
        return ArrayPaths(self.arrays / array_id)

    def secret(self, owner: str) -> Path:
        return self.secrets / f"{owner}.json"

    def environment(self, digest: str) -> Path:
        return self.environments / f"{digest}.json"

    def sweep(self, sweep_id: str) -> Path:
        return self.sweeps / f"{sweep_id}.json"

    def wild_loop(self, wild_id: str) -> Path:
        return self.wild / f"{wild_id}.json"
