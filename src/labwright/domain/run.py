"""A run: one configuration, one command. Its statuses, the one table of moves between them, and its facts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from labwright.domain.errors import IllegalMove


class RunStatus(StrEnum):
    READY = "ready"
    QUEUED = "queued"
    LAUNCHING = "launching"
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"


_ENDS = frozenset({RunStatus.FINISHED, RunStatus.FAILED, RunStatus.STOPPED, RunStatus.LOST})

MOVES: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.READY: frozenset({RunStatus.QUEUED, RunStatus.STOPPED, RunStatus.FAILED}),
    RunStatus.QUEUED: frozenset({RunStatus.LAUNCHING, RunStatus.STOPPED, RunStatus.FAILED}),
    # Back to queued only if nothing was started, e.g. the disk was full while the folder was created.
    RunStatus.LAUNCHING: _ENDS | {RunStatus.WAITING, RunStatus.RUNNING, RunStatus.QUEUED},
    RunStatus.WAITING: _ENDS | {RunStatus.RUNNING},
    RunStatus.RUNNING: _ENDS | {RunStatus.WAITING, RunStatus.QUEUED},
    RunStatus.LOST: frozenset({RunStatus.FINISHED, RunStatus.FAILED}),
    RunStatus.FINISHED: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.STOPPED: frozenset(),
}

TERMINAL = _ENDS
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
ACTIVE = frozenset({RunStatus.LAUNCHING, RunStatus.WAITING, RunStatus.RUNNING})
_NAME_LENGTH = 60  # of a name made from a command
LOCAL, EXTERNAL, SLURM = "local", "external", "slurm"  # the launcher: this server, the user by hand, Slurm
WILD_TAG = "wild"  # tag of a run that a wild loop created; the loop relies on the metrics that its script prints
REHEARSAL = "rehearsal"  # tag of a trial run; its numbers never count as results


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuwrapConfig:
    """Whether the sidecar checks for other users of a GPU, waits and retries."""

    enabled: bool = True
    retries: int = -1
    retry_delay_seconds: float = 10.0

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What a run does and what it needs: the fields that a request and a stored run share.

    `NewRun` and `Run` extend it, so a new field is declared here once and stored JSON stays flat.
    """

    command: str
    name: str | None = None
    workdir: str | None = None
    sweep_id: str | None = None
    parent_run_id: str | None = None
    chat_session_id: str | None = None
    plan_id: str | None = None
    gpuwrap_config: GpuwrapConfig | None = None
    gpus: int | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    time_limit_seconds: float | None = None
    nodes: int | None = None
    slurm: dict[str, Any] | None = None
    env: dict[str, str] = field(default_factory=dict)
    env_hash: str | None = None  # of the caller's environment, if it was sent
    params: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    tags: tuple[str, ...] = ()
    notes: str = ""
    after: tuple[str, ...] = ()  # runs that must finish first
    priority: int = 0
    tty: bool = False
    use_snapshot: bool = False  # execute the code snapshot, not the workdir
    approved: str | None = None  # digest of the plan; the run starts only with the project code that it names
    snapshot: dict[str, Any] | None = None

    def spec_fields(self) -> dict[str, Any]:
        """Return the shared fields, as keyword arguments for `NewRun` or `Run`."""
        return {name: getattr(self, name) for name in RunSpec.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(RunSpec):
    """A spec with its defaults filled in, plus everything that has happened to the run."""

    id: str
    name: str
    workdir: str
    gpus: int = 0
    created_at: str
    created_by: str
    status: RunStatus = RunStatus.READY
    status_reason: str = ""
    named_gpus: tuple[str, ...] = ()  # GPUs that the command or its env selects itself
    secret_env: tuple[str, ...] = ()  # names only; the values are never stored
    missing_secrets: tuple[str, ...] = ()  # secrets of the parent run that this run does not have
    config_hash: str | None = None  # of the params without the seed
    trial: int | None = None  # number of the configuration, if the sweep created the run
    archived: bool = False
    archived_at: str | None = None
    stop_requested: bool = False
    queued_at: str | None = None
    launched_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    launcher: str | None = None
    tmux_target: str | None = None
    slurm_job_id: str | None = None
    slurm_partition: str | None = None  # where Slurm placed the job
    node: str | None = None
    gpu_uuids: tuple[str, ...] = ()
    attempt: int = 1
    earlier_seconds: float = 0.0  # run time of earlier attempts
    pid: int | None = None
    run_dir: str | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    summary_left_out: int = 0  # number of metrics that did not fit into the summary
    refused: dict[str, Any] = field(default_factory=dict)  # metric values that were not stored, and why
    usage: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def move(self, to: RunStatus, **facts: Any) -> Run:
        """Return the run with another status and the facts of that status. Nothing else changes a status."""
        if to not in MOVES[self.status]:
            raise IllegalMove(
                f"Run {self.id} is {self.status} and cannot become {to}.",
                hint="A run that has ended does not change. Use rerun to run it again."
                if self.status in TERMINAL
                else "",
            )
        return replace(self, status=to, **{"status_reason": "", **facts})

    def evolve(self, **facts: Any) -> Run:
        """Return the run with other facts and the same status."""
        if "status" in facts:
            raise IllegalMove("Use move() to change the status of a run.")
        return replace(self, **facts)

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE

    @property
    def is_on_slurm(self) -> bool:
        return self.launcher == SLURM

    @property
    def is_external(self) -> bool:
        """Whether the user started the process by hand and it logs to this server."""
        return self.launcher == EXTERNAL

    def to_dict(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["gpuwrap_config"] = self.gpuwrap_config.to_dict() if self.gpuwrap_config else None
        return data

    def to_json(self) -> str:
        return _ENCODER.encode(self.to_dict())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Run:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["status"] = RunStatus(known["status"])
        if known.get("gpuwrap_config"):
            known["gpuwrap_config"] = GpuwrapConfig(**known["gpuwrap_config"])
        for name in _TUPLES:
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


_TUPLES = tuple(name for name, each in Run.__dataclass_fields__.items() if str(each.type).startswith("tuple"))


class RunRecord(NamedTuple):
    """A new run as it is stored, and the fields that its event needs."""

    id: str
    name: str
    status: RunStatus
    sweep_id: str | None
    text: str  # JSON


def copies(base: Run, variants: Iterable[dict[str, Any]]) -> Iterator[RunRecord]:
    """Yield records of runs that differ only in the fields of `variants`; the shared fields are encoded once.

    Every variant has the same fields, including `id`, `name` and `status`.
    """
    common: str | None = None
    for variant in variants:
        if common is None:
            shared = {name: value for name, value in base.to_dict().items() if name not in variant}
            common = _ENCODER.encode(shared)[:-1]
        text = f"{common},{_ENCODER.encode(variant)[1:]}"
        yield RunRecord(variant["id"], variant["name"], variant["status"], base.sweep_id, text)


def name_from(command: str) -> str:
    """Return the default name of a run: the first line of its command."""
    line = command.strip().splitlines()[0]
    return line if len(line) <= _NAME_LENGTH else f"{line[: _NAME_LENGTH - 1]}…"
