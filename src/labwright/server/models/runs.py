"""Runs and their logs over HTTP."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, Field, create_model

from labwright.domain.alert import Severity
from labwright.domain.run import GpuwrapConfig, Run
from labwright.server.models.fields import (
    BIG,
    CallerEnvironment,
    Environment,
    Id,
    In,
    Name,
    PlainJson,
    Reference,
    Tag,
    Text,
)


def _described(record: type[Any]) -> Any:
    """Return a model that describes a domain record. Unlike a dataclass, it is analysed once, not per route."""
    hints = get_type_hints(record)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        made = field.default_factory
        default = Field(default_factory=made) if made is not dataclasses.MISSING else field.default
        fields[field.name] = (hints[field.name], ... if default is dataclasses.MISSING else default)
    return create_model(record.__name__, **fields)


RunOut: Any = _described(Run)


class GpuwrapIn(In):
    enabled: bool = True
    retries: int = Field(-1, ge=-1, le=1_000_000, description="retries before giving up; -1: no limit")
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
    """Fields that a single run and the runs of a sweep share. Their names are those of `NewRun`."""

    workdir: Annotated[Text, Field(max_length=4096)] | None = Field(None, description="default: the project folder")
    chat_session_id: Id | None = None
    auto_start: bool = False
    gpuwrap_config: GpuwrapIn | None = None
    gpus: int | None = Field(None, ge=0, le=1024, description="default: 1 on a machine with GPUs; 0 hides the GPUs")
    cpus: int | None = Field(None, ge=1, le=100_000)
    memory_mb: int | None = Field(None, ge=1, le=BIG)
    time_limit_seconds: float | None = Field(None, gt=0, le=10**9, allow_inf_nan=False)
    env: Environment = Field(default_factory=dict)
    caller_env: CallerEnvironment | None = Field(
        None, description="the whole environment to use instead of the server's"
    )
    tags: list[Tag] = Field(default_factory=list, max_length=100)
    priority: int = Field(0, ge=-1_000_000, le=1_000_000)
    tty: bool = False
    use_snapshot: bool = Field(False, description="execute the code snapshot, not the current workdir")
    nodes: int | None = Field(None, ge=1, le=100_000)
    slurm: SlurmIn | None = None

    def values(self, form: type[RunSettings]) -> dict[str, Any]:
        """Return the fields of this form as keyword arguments for `NewRun`."""
        found = {name: getattr(self, name) for name in form.model_fields}
        if self.gpuwrap_config:
            found["gpuwrap_config"] = self.gpuwrap_config.value()
        if self.slurm:
            found["slurm"] = self.slurm.model_dump()
        return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


class RunIn(RunSettings):
    name: Name | None = Field(None, description="default: the first line of the command")
    command: Annotated[Text, Field(max_length=1_000_000)]
    sweep_id: Reference | None = None
    parent_run_id: Reference | None = None
    params: PlainJson = Field(default_factory=dict)
    seed: int | None = Field(None, ge=-BIG, le=BIG)
    after: list[Reference] = Field(default_factory=list, max_length=1000, description="runs that must finish first")
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
    answer_by: float | None = Field(
        None, description="Unix time after which the caller no longer waits; then no run is created"
    )


class ImportIn(In):
    path: Annotated[Text, Field(min_length=1, max_length=4096)]
    outside: bool = Field(False, description="allow a folder outside of the project")


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
    secrets: Annotated[
        CallerEnvironment | None, Field(description="values of its secret variables, which are not stored")
    ] = None


class AlertIn(In):
    message: Annotated[Text, Field(min_length=1, max_length=10_000)]
    choices: list[Tag] = Field(default_factory=list, max_length=20)
    severity: Severity = Severity.WARNING


class LogsOut(BaseModel):
    content: str
    offset: int
    total_size: int
    has_more_before: bool
    has_more_after: bool
    next_offset: int
    removed_at: str | None = Field(description="when `gc` removed the output, or null")


class FirstErrorOut(BaseModel):
    offset: int | None = Field(description="start of the line, or null if there is no error")
    searched: int = Field(description="how many bytes were searched from the start")
    total_size: int


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
    removed_at: str | None = Field(description="when `gc` removed the output, or null")
    warnings: list[str]
