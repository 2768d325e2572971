"""A run: one configuration, one command. The statuses, the one table of moves between them, the facts of each."""

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
    # Back to queued only when nothing was spawned, e.g. the disk was full while the folder was made.
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
LOCAL, EXTERNAL, SLURM = "local", "external", "slurm"  # who launched it: we here, somebody by hand, Slurm
WILD_TAG = "wild"  # a tag: a wild loop made the run, and counts on the metrics that its script prints
REHEARSAL = "rehearsal"  # a tag: the run tried something out, and its numbers are nobody's results


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuwrapConfig:
    """Whether the sidecar looks for foreign use of a card, waits and retries."""

    enabled: bool = True
    retries: int = -1
    retry_delay_seconds: float = 10.0

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: str
    name: str
    command: str
    workdir: str
    created_at: str
    created_by: str
    status: RunStatus = RunStatus.READY
    status_reason: str = ""
    sweep_id: str | None = None
    parent_run_id: str | None = None
    chat_session_id: str | None = None
    plan_id: str | None = None
    gpuwrap_config: GpuwrapConfig | None = None
    gpus: int = 0
    named_gpus: tuple[str, ...] = ()  # cards which the command or its env picks itself
    cpus: int | None = None
    memory_mb: int | None = None
    time_limit_seconds: float | None = None
    nodes: int | None = None
    slurm: dict[str, Any] | None = None
    env: dict[str, str] = field(default_factory=dict)
    secret_env: tuple[str, ...] = ()  # names only; the values are never stored
    missing_secrets: tuple[str, ...] = ()  # names that the run it repeats had, and it has not
    env_hash: str | None = None  # the caller's environment, where one was sent
    params: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    config_hash: str | None = None  # of the params without the seed
    trial: int | None = None  # which configuration of its sweep, where the sweep itself made it
    tags: tuple[str, ...] = ()
    notes: str = ""
    after: tuple[str, ...] = ()
    priority: int = 0
    tty: bool = False
    use_snapshot: bool = False
    approved: str | None = None  # a digest of its plan: it begins only with the project's code that this names
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
    slurm_partition: str | None = None  # where Slurm put it, asked for or not
    node: str | None = None
    gpu_uuids: tuple[str, ...] = ()
    attempt: int = 1
    earlier_seconds: float = 0.0  # at work in the attempts before this one
    pid: int | None = None
    run_dir: str | None = None
    snapshot: dict[str, Any] | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    summary_left_out: int = 0  # metrics beyond those that the summary holds
    refused: dict[str, Any] = field(default_factory=dict)  # what was logged and not kept: how many, the first with why
    usage: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def move(self, to: RunStatus, **facts: Any) -> Run:
        """The only way to change a status; `facts` are what that status owns."""
        if to not in MOVES[self.status]:
            raise IllegalMove(
                f"Run {self.id} is {self.status} and cannot become {to}.",
                hint="A run that has ended stays as it is; use rerun to try again." if self.status in TERMINAL else "",
            )
        return replace(self, status=to, **{"status_reason": "", **facts})

    def evolve(self, **facts: Any) -> Run:
        """Change facts, never the status."""
        if "status" in facts:
            raise IllegalMove("A status changes only by a move.")
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
        """Started by hand, and logs to us."""
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
        for name in ("tags", "after", "named_gpus", "secret_env", "missing_secrets", "gpu_uuids", "warnings"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


class RunRecord(NamedTuple):
    """A new run as it is stored, and what is told of it."""

    id: str
    name: str
    status: RunStatus
    sweep_id: str | None
    text: str  # JSON


def copies(base: Run, variants: Iterable[dict[str, Any]]) -> Iterator[RunRecord]:
    """Runs that have most in common, by the thousand: what they share is made into JSON once.

    Every variant has the same fields, `id`, `name` and `status` among them.
    """
    common: str | None = None
    for variant in variants:
        if common is None:
            shared = {name: value for name, value in base.to_dict().items() if name not in variant}
            common = _ENCODER.encode(shared)[:-1]
        text = f"{common},{_ENCODER.encode(variant)[1:]}"
        yield RunRecord(variant["id"], variant["name"], variant["status"], base.sweep_id, text)


def name_from(command: str) -> str:
    """What a run is called that nobody gave a name."""
    line = command.strip().splitlines()[0]
    return line if len(line) <= _NAME_LENGTH else f"{line[: _NAME_LENGTH - 1]}…"
