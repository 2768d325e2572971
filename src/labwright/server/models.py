"""What comes in and goes out over HTTP. Checks of form are here; checks of meaning are in the services."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from labwright.domain.alert import Severity
from labwright.domain.cluster import ClusterSource, ClusterStatus, ClusterType, GpuwrapAdvice
from labwright.domain.early_stop import AFTER_RUNS, FACTOR, FIRST_STEP
from labwright.domain.run import GpuwrapConfig, Run
from labwright.domain.sweep import SweepMethod, SweepStatus

MAX_JSON_BYTES = 64 * 1024
MAX_JSON_DEPTH = 20
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
BIG = 2**53  # beyond this a JSON number is not exact everywhere


def _plain_text(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold NUL characters")
    return whole_characters(text)


def whole_characters(text: str) -> str:
    if not text.isascii() and _HALF_A_PAIR.search(text):
        raise ValueError("must be valid Unicode: half of a surrogate pair is no character")
    return text


def _plain_json(value: dict[str, Any]) -> dict[str, Any]:
    if _depth(value) > MAX_JSON_DEPTH:
        raise ValueError(f"may be nested {MAX_JSON_DEPTH} deep at most")
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        raise ValueError("must hold plain JSON values: no NaN, no Infinity, valid Unicode") from error
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f"may take {MAX_JSON_BYTES >> 10} KB at most")
    return value


def _depth(value: object, level: int = 1) -> int:
    if level > MAX_JSON_DEPTH or not isinstance(value, dict | list):
        return level
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(item, level + 1) for item in inner), default=level)


Text = Annotated[str, AfterValidator(_plain_text)]
Name = Annotated[Text, Field(min_length=1, max_length=200)]
Tag = Annotated[Text, Field(min_length=1, max_length=100)]
Id = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_.@:-]+$")]
PlainJson = Annotated[dict[str, Any], AfterValidator(_plain_json)]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
EnvValue = Annotated[Text, Field(max_length=100_000)]
Environment = Annotated[dict[EnvName, EnvValue], Field(max_length=2000)]


def _described(record: type[Any]) -> Any:
    """A record of the domain for the description of the API: unlike a dataclass it is analysed once, not by route."""
    hints = get_type_hints(record)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        made = field.default_factory
        default = Field(default_factory=made) if made is not dataclasses.MISSING else field.default
        fields[field.name] = (hints[field.name], ... if default is dataclasses.MISSING else default)
    return create_model(record.__name__, **fields)


RunOut: Any = _described(Run)


class In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class GpuwrapIn(In):
    enabled: bool = True
    retries: int = Field(-1, ge=-1, le=1_000_000, description="further tries before giving up; -1: as long as it takes")
    retry_delay_seconds: float = Field(10, gt=0, le=600, allow_inf_nan=False)

    def value(self) -> GpuwrapConfig:
        return GpuwrapConfig(**self.model_dump())


class SlurmIn(In):
    partition: Name | None = None
    account: Name | None = None
    qos: Name | None = None
    constraint: Name | None = None
    gres: Name | None = None
    extra: list[Name] = Field(default_factory=list, max_length=50)


class RunSettings(In):
    """What a single run and all runs of a sweep can be given."""

    workdir: Annotated[Text, Field(max_length=4096)] | None = Field(None, description="defaults to the project root")
    chat_session_id: Id | None = None
    auto_start: bool = False
    gpuwrap_config: GpuwrapIn | None = None
    gpus: int | None = Field(None, ge=0, le=1024, description="on a GPU machine 1 by default; 0 hides the cards")
    cpus: int | None = Field(None, ge=1, le=100_000)
    memory_mb: int | None = Field(None, ge=1, le=BIG)
    time_limit_seconds: float | None = Field(None, gt=0, le=10**9, allow_inf_nan=False)
    env: Environment = Field(default_factory=dict)
    caller_env: Environment | None = Field(None, description="the whole environment to use instead of the server's")
    tags: list[Tag] = Field(default_factory=list, max_length=100)
    priority: int = Field(0, ge=-1_000_000, le=1_000_000)
    tty: bool = False
    use_snapshot: bool = Field(False, description="execute the code as it was at submit, not the workdir")
    nodes: int | None = Field(None, ge=1, le=100_000)
    slurm: SlurmIn | None = None


class RunIn(RunSettings):
    name: Name | None = Field(None, description="defaults to the command's first line")
    command: Annotated[Text, Field(max_length=1_000_000)]
    sweep_id: Id | None = None
    parent_run_id: Id | None = None
    params: PlainJson = Field(default_factory=dict)
    seed: int | None = Field(None, ge=-BIG, le=BIG)
    after: list[Id] = Field(default_factory=list, max_length=1000, description="runs that must finish first")
    notes: Annotated[Text, Field(max_length=100_000)] = ""


class ExternalRunIn(In):
    name: Name | None = None
    command: Annotated[Text, Field(min_length=1, max_length=1_000_000)]
    workdir: Annotated[Text, Field(max_length=4096)] | None = None
    params: PlainJson = Field(default_factory=dict)
    tags: list[Tag] = Field(default_factory=list, max_length=100)
    notes: Annotated[Text, Field(max_length=100_000)] = ""
    pid: int = Field(ge=1, le=2**31)
    start_time: int = Field(ge=0, le=BIG, description="clock ticks since boot, field 22 of /proc/PID/stat")
    boot_id: Annotated[Text, Field(max_length=100)]
    host: Annotated[Text, Field(max_length=300)]
    answer_by: float | None = Field(None, description="Unix time after which nobody waits: then no run is made")


class ImportIn(In):
    path: Annotated[Text, Field(min_length=1, max_length=4096)]
    outside: bool = Field(False, description="it is meant to be outside of the project")


class RunPatch(In):
    name: Name | None = None
    tags: list[Tag] | None = Field(None, max_length=100)
    notes: Annotated[Text, Field(max_length=100_000)] | None = None
    priority: int | None = Field(None, ge=-1_000_000, le=1_000_000)


class RerunIn(In):
    command: Annotated[Text, Field(max_length=1_000_000)] | None = None
    auto_start: bool = True
    gpuwrap_config: GpuwrapIn | None = None
    env: Environment | None = None


class MetricIn(In):
    key: Annotated[Text, Field(min_length=1, max_length=1024)]
    goal: Literal["min", "max"] = "min"
    use: Literal["last", "best"] = Field("last", description="which value of a run counts")


class WildSweepIn(In):
    name: Name
    goal: Annotated[Text, Field(max_length=100_000)] = ""
    chat_session_id: Id | None = None
    parallel: int | None = Field(None, ge=1, le=100_000, description="runs of this sweep at a time")
    metric: MetricIn | None = Field(None, description="what its runs are compared by")


class BudgetIn(In):
    gpu_hours: float | None = Field(None, gt=0, le=10**9, allow_inf_nan=False)
    runs: int | None = Field(None, ge=1, le=1_000_000)
    wall_seconds: float | None = Field(None, gt=0, le=10**9, allow_inf_nan=False)

    def value(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class EarlyStopIn(In):
    method: Literal["median", "halving"]
    after_runs: int = Field(AFTER_RUNS, ge=1, le=10_000, description="median: so many others must have come as far")
    from_step: int = Field(0, ge=0, le=BIG, description="median: nothing is ended before this step")
    first_step: int = Field(FIRST_STEP, ge=1, le=BIG, description="halving: the first step at which runs are judged")
    factor: int = Field(FACTOR, ge=2, le=100, description="halving: one of so many goes on, to so many times the step")


Seed = Annotated[int, Field(ge=-BIG, le=BIG)]
Seeds = Annotated[int, Field(ge=1, le=1000)] | Annotated[list[Seed], Field(min_length=1, max_length=1000)]


def seed_values(seeds: int | list[int] | None) -> tuple[int, ...]:
    """`3` stands for the seeds 0, 1 and 2."""
    return tuple(range(seeds)) if isinstance(seeds, int) else tuple(dict.fromkeys(seeds or ()))


class SweepIn(RunSettings):
    name: Name
    base_command: Annotated[Text, Field(max_length=1_000_000)]
    parameters: PlainJson
    method: Literal["grid", "random", "adaptive"] = "grid"
    goal: Annotated[Text, Field(max_length=100_000)] = ""
    metric: MetricIn | None = None
    max_runs: int | None = Field(None, ge=1, le=1_000_000, description="seeds included")
    parallel: int | None = Field(None, ge=1, le=100_000, description="runs of this sweep at a time")
    seeds: Seeds | None = Field(None, description="how many, or which")
    early_stop: EarlyStopIn | None = None
    budget: BudgetIn | None = None
    sampling_seed: int | None = Field(None, ge=0, le=2**31, description="the same one draws the same configurations")
    again: bool = Field(False, description="also if another sweep has all of these runs already")


class SweepExtension(In):
    parameters: PlainJson = Field(default_factory=dict, description="values to add to a list; a range replaces its own")
    seeds: Seeds | None = None
    max_runs: int | None = Field(None, ge=1, le=1_000_000)
    budget: BudgetIn | None = None
    parallel: int | None = Field(None, ge=1, le=100_000)


class SweepResume(In):
    budget: BudgetIn | None = None


class AlertIn(In):
    message: Annotated[Text, Field(min_length=1, max_length=10_000)]
    choices: list[Tag] = Field(default_factory=list, max_length=20)
    severity: Severity = Severity.WARNING


class AlertAnswer(In):
    choice: Tag


class DetectIn(In):
    preferred_type: ClusterType | None = None


class ClusterIn(In):
    type: ClusterType
    max_parallel: int | None = Field(None, ge=1, le=100_000)
    shared_machine: bool | None = None


class ErrorDetail(BaseModel):
    code: str
    message: str
    hint: str
    field: list[str | int] | None = Field(None, description="where in the request it is, where that is known")


class ErrorOut(BaseModel):
    error: ErrorDetail


class HealthOut(BaseModel):
    status: str
    version: str


class Recommended(BaseModel):
    gpuwrap: GpuwrapAdvice
    max_parallel: int


class GpuProcessOut(BaseModel):
    pid: int
    memory_mb: int
    user: str
    name: str


class LeaseOut(BaseModel):
    run_id: str
    user: str
    pid: int
    since: str


class GpuOut(BaseModel):
    index: int
    uuid: str
    name: str
    memory_total_mb: int
    memory_used_mb: int
    utilization: int
    processes: list[GpuProcessOut]
    lease: LeaseOut | None


class EvidenceOut(BaseModel):
    looked_at: str
    said: str


class PartitionOut(BaseModel):
    name: str
    default: bool
    state: str
    time_limit_seconds: int | None
    nodes: int
    nodes_unwell: int
    cpus: int
    gpus: int


class NodeOut(BaseModel):
    name: str
    state: str = Field(description="in Slurm's word")
    is_well: bool
    reason: str = Field(description="why it was taken out, as Slurm has it")
    partitions: list[str]
    cpus: int
    cpus_allocated: int
    memory_mb: int
    gpus: int
    gpus_allocated: int | None = Field(description="null: this Slurm does not tell")


class Cluster(BaseModel):
    type: ClusterType
    status: ClusterStatus
    source: ClusterSource
    gpu_count: int
    gpus: list[GpuOut]
    cpu_count: int
    memory_total_mb: int
    node_count: int
    head_node: str
    partitions: list[PartitionOut]
    nodes: list[NodeOut]
    shared_machine: bool
    recommended: Recommended
    evidence: list[EvidenceOut]
    last_detected_at: str


class ClusterOut(BaseModel):
    cluster: Cluster
    run_summary: dict[str, int]


class GpuTraceOut(BaseModel):
    uuid: str
    times: list[float] = Field(description="seconds since the epoch; a time in which nobody looked has no entry")
    utilization: list[float] = Field(description="percent, mean since the entry before")
    memory_used_mb: list[int] = Field(description="greatest since the entry before")
    run_ids: list[str] = Field(description="which run held it; empty where none did")


class GpuHistoryOut(BaseModel):
    hours: float
    every_seconds: float = Field(description="how often the server looks")
    gpus: list[GpuTraceOut]


class SweepOut(BaseModel):
    id: str
    name: str
    goal: str
    method: SweepMethod
    status: SweepStatus
    status_reason: str
    chat_session_id: str | None
    plan_id: str | None
    parallel: int | None
    base_command: str
    parameters: dict[str, Any]
    seeds: list[int]
    max_runs: int | None
    metric: dict[str, Any] | None
    early_stop: dict[str, Any] | None
    budget: dict[str, Any]
    sampling_seed: int
    best: dict[str, Any] | None
    progress: dict[str, int]
    warnings: list[str]
    created_at: str
    created_by: str
    started_at: str | None
    ended_at: str | None


class SweepAddedOut(SweepOut):
    added: int = Field(description="new runs")
    already: int = Field(description="asked for, and there before: not repeated")


class VerdictOut(BaseModel):
    kind: Literal["none", "only_one", "unknown", "within_noise", "clear"]
    text: str


class ImportanceOut(BaseModel):
    method: str
    parameters: dict[str, float]
    note: str


class ConfigurationOut(BaseModel):
    config_hash: str
    trial: int | None
    params: dict[str, Any]
    mean: float | None
    std: float | None
    n: int
    progress: dict[str, int]
    run_ids: list[str]


class SweepResultsOut(BaseModel):
    sweep_id: str
    metric: dict[str, Any]
    total: int = Field(description="configurations, of which the best come first")
    best: dict[str, Any] | None
    configurations: list[ConfigurationOut]
    importance: ImportanceOut
    best_so_far: list[tuple[int, float]]
    verdict: VerdictOut


class LogsOut(BaseModel):
    content: str
    offset: int
    total_size: int
    has_more_before: bool
    has_more_after: bool
    next_offset: int
    removed_at: str | None = Field(description="when `gc` removed the output; none while it is there")


class LogDigestOut(BaseModel):
    run_id: str
    status: str
    status_reason: str
    exit_code: int | None
    signal: int | None
    error: str | None
    first_error: str | None
    gpu_contention: list[str]
    last_lines: list[str]
    total_size: int
    gap: dict[str, int] | None
    removed_at: str | None = Field(description="when `gc` removed the output; none while it is there")
    warnings: list[str]


class EventOut(BaseModel):
    seq: int
    epoch: str
    time: str
    type: str
    actor: str
    run_id: str | None
    sweep_id: str | None
    data: dict[str, Any]


class ViewIn(In):
    name: Text = Field(min_length=1, max_length=60)
    query: Text = Field(max_length=4000, description="what stands behind the ? of the address")


class ViewOut(BaseModel):
    name: str
    query: str
