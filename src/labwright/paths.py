"""Every file name Labwright uses, in one place; nothing else spells one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

STATE_DIR = ".labwright"
CONFIG_FILE = "labwright.toml"
COPY_LISTING = "digest.json"  # beside the files of an approved copy: what they and the project were
ARTIFACTS = "artifacts"  # in a run's folder, and the beginning of what is recorded of a file in there
DEFAULT_LEASE_DIR = "/run/lock/labwright"


def key_file(environ: Mapping[str, str], endpoint: str) -> Path:
    """Where a user keeps the key of a model's endpoint. A fixed place: no project may name another file of theirs."""
    base = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '~')}/.config"
    return Path(os.path.expanduser(base)) / "labwright" / "keys" / endpoint


class RunPaths:
    """One run's folder: the contract between the server and the sidecar. One writer a file.

    Plain strings: the sidecar hands them to `os` calls by the thousand.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.dir = os.fspath(folder)
        self.spec = f"{self.dir}/spec.json"  # server
        self.command = f"{self.dir}/command.sh"  # server
        self.env = f"{self.dir}/env.json"  # server
        self.secrets = f"{self.dir}/secrets.json"  # server; the supervisor unlinks it
        self.code = f"{self.dir}/code"  # server; only where the snapshot itself is executed
        self.control = f"{self.dir}/control"  # server to sidecar
        self.stop = f"{self.control}/stop"
        self.output = f"{self.dir}/output.log"  # relay: what the job prints
        self.output_gap = f"{self.dir}/output.gap.json"  # monitor: what the size cap dropped
        self.output_removed = f"{self.dir}/output.removed"  # server: empty; its mtime says when gc removed the output
        self.stdin = f"{self.dir}/stdin"  # supervisor: a link to the input of the job
        self.events = f"{self.dir}/events.jsonl"  # sidecar
        self.heartbeat = f"{self.dir}/heartbeat"  # monitor: who watches; its mtime says when it last did
        self.exit = f"{self.dir}/exit.json"  # supervisor
        self.end = f"{self.dir}/end.json"  # server: how it ended, where no sidecar could say
        self.exit_code = f"{self.dir}/exit.code"  # the C library of a script that was started by hand
        self.metrics = f"{self.dir}/metrics"  # one file a source
        self.held = f"{self.dir}/held"  # server: its job waits because we told Slurm to hold it
        self.slurm_log = f"{self.dir}/slurm.log"  # Slurm, and a sidecar that could not even begin

    def claim(self, attempt: int) -> str:
        return f"{self.dir}/claim" if attempt == 1 else f"{self.dir}/claim.{attempt}"


class ArrayPaths:
    """The folder of a Slurm job array: which task is which run, and what Slurm had to say."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.dir = os.fspath(folder)
        self.runs = f"{self.dir}/runs.json"

    def log(self, task: int | str) -> str:
        return f"{self.dir}/{task}.log"


class PlanPaths:
    """One plan's folder, the same in every workspace. Nothing in it names a place outside, so it can be moved."""

    def __init__(self, folder: Path) -> None:
        self.dir = folder
        self.manifest = folder / "manifest.yaml"
        self.text = folder / "plan" / "implementation_plan.md"
        self.versions = folder / "versions"
        self.staged = folder / "staged"  # what the next rename puts in place
        self.copies = folder / "copies"  # by digest, read-only
        self.execution = folder / "execution"  # of running it: what is done, and what its steps were given and gave
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
        self.reserve = self.state / "reserve"  # disk space for what makes room
        self.gpu_history = self.state / "gpu-history.jsonl"
        self.runs = self.state / "runs"
        self.sweeps = self.state / "sweeps"
        self.wild = self.state / "wild"
        self.arrays = self.state / "arrays"
        self.plans = self.state / "plans"
        self.skills = self.state / "skills"
        self.channels = self.state / "channels"  # addresses of notifications that were given over HTTP
        self.headers = self.state / "headers"  # tokens for `curl -H @file`
        self.shells = self.state / "shells"  # of conversations: which command each began last
        self.snapshots = self.state / "snapshots"
        self.rehearsals = self.state / "rehearsals"  # throw-away copies of the project
        self.python_path = self.state / "pythonpath"  # what `import labwright` finds inside a run
        self.metric_claims = self.state / "metric-claims"  # sidecars: which run reads which file of a workdir
        self.unread_metrics = self.state / "unread-metrics"  # one empty file a run; see compute/unread_metrics.py
        self.secrets = self.state / "secrets"
        self.environments = self.state / "environments"
        self.spending = self.state / "spending.jsonl"  # what each call of a language model took
        self.logs = self.state / "logs"
        self.backups = self.state / "backups"
        self.restored = self.state / "restored.json"  # from which backup, until the first start after it
        self.restoring = project / f"{STATE_DIR}.restoring"  # half a restored state folder

    @property
    def database(self) -> Path:
        """Beside the rest, or where the pointer says when the project is on a network file system."""
        if self.database_pointer.exists():
            return Path(self.database_pointer.read_text().partition("\n")[0])
        return self.state / "labwright.db"

    @property
    def wake(self) -> Path:
        """Beside the database: few network file systems have FIFOs, and none reaches another machine."""
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
