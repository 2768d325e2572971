"""Sweeps over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from labwright.domain.search.early_stop import AFTER_RUNS, FACTOR, FIRST_STEP
from labwright.domain.sweep import SweepMethod, SweepStatus
from labwright.server.models.fields import BIG, Id, In, Name, PlainJson, Text
from labwright.server.models.runs import RunSettings


class MetricIn(In):
    key: Annotated[Text, Field(min_length=1, max_length=1024)]
    goal: Literal["min", "max"] = "min"
    use: Literal["last", "best"] = Field("last", description="which value of a run counts: the last or the best")


class WildSweepIn(In):
    name: Name
    goal: Annotated[Text, Field(max_length=100_000)] = ""
    chat_session_id: Id | None = None
    parallel: int | None = Field(None, ge=1, le=100_000, description="max parallel runs of this sweep")
    metric: MetricIn | None = Field(None, description="the metric that compares its runs")


class BudgetIn(In):
    gpu_hours: float | None = Field(None, gt=0, le=10**9, allow_inf_nan=False)
    runs: int | None = Field(None, ge=1, le=1_000_000)
    wall_seconds: float | None = Field(None, gt=0, le=10**9, allow_inf_nan=False)

    def value(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class EarlyStopIn(In):
    method: Literal["median", "halving"]
    after_runs: int = Field(
        AFTER_RUNS, ge=1, le=10_000, description="median: minimum number of other runs that reached this step"
    )
    from_step: int = Field(0, ge=0, le=BIG, description="median: no run is stopped before this step")
    first_step: int = Field(FIRST_STEP, ge=1, le=BIG, description="halving: the first step at which runs are compared")
    factor: int = Field(FACTOR, ge=2, le=100, description="halving: one of N runs continues, to N times the step")


Seed = Annotated[int, Field(ge=-BIG, le=BIG)]
Seeds = Annotated[int, Field(ge=1, le=1000)] | Annotated[list[Seed], Field(min_length=1, max_length=1000)]


def seed_values(seeds: int | list[int] | None) -> tuple[int, ...]:
    """Return the seeds. A number N means 0 to N - 1."""
    return tuple(range(seeds)) if isinstance(seeds, int) else tuple(dict.fromkeys(seeds or ()))


class SweepIn(RunSettings):
    name: Name
    base_command: Annotated[Text, Field(max_length=1_000_000)]
    parameters: PlainJson
    method: Literal["grid", "random", "adaptive"] = "grid"
    goal: Annotated[Text, Field(max_length=100_000)] = ""
    metric: MetricIn | None = None
    max_runs: int | None = Field(None, ge=1, le=1_000_000, description="seeds included")
    parallel: int | None = Field(None, ge=1, le=100_000, description="max parallel runs of this sweep")
    seeds: Seeds | None = Field(None, description="a number of seeds, or a list of seeds")
    early_stop: EarlyStopIn | None = None
    budget: BudgetIn | None = None
    sampling_seed: int | None = Field(None, ge=0, le=2**31, description="the same seed gives the same configurations")
    again: bool = Field(False, description="create it even if another sweep has all of these runs")


class SweepExtension(In):
    parameters: PlainJson = Field(
        default_factory=dict, description="values to add to a list, or a range that replaces the old one"
    )
    seeds: Seeds | None = None
    max_runs: int | None = Field(None, ge=1, le=1_000_000)
    budget: BudgetIn | None = None
    parallel: int | None = Field(None, ge=1, le=100_000)


class SweepResume(In):
    budget: BudgetIn | None = None


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
    to_retry: int | None = Field(None, description="number of runs that retry-failed would retry; null in a list")
    warnings: list[str]
    created_at: str
    created_by: str
    started_at: str | None
    ended_at: str | None


class SweepAddedOut(SweepOut):
    added: int = Field(description="new runs")
    already: int = Field(description="requested runs that the sweep already had")


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
    total: int = Field(description="number of configurations")
    best: dict[str, Any] | None
    configurations: list[ConfigurationOut]
    importance: ImportanceOut
    best_so_far: list[tuple[int, float]]
    verdict: VerdictOut
