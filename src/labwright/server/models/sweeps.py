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
    to_retry: int | None = Field(None, description="runs that retry-failed would do again; null in a list")
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
