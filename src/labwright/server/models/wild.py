"""What comes in and goes out over HTTP about wild loops."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from labwright.domain.wild import IterationStatus, IterationVerdict, WildStatus
from labwright.server.models.fields import NOT_BLANK, Id, In, PlainJson, Text
from labwright.server.models.sweeps import BudgetIn, MetricIn, Seeds

Goal = Annotated[Text, Field(max_length=20_000, pattern=NOT_BLANK)]
Path = Annotated[Text, Field(min_length=1, max_length=4096)]


class WildIn(In):
    goal: Goal = Field(description="in plain English, with its own success criterion: reach val_acc 0.9 by tuning lr")
    session_id: Id | None = Field(None, description="the conversation that is told how it goes")
    budget: BudgetIn | None = Field(None, description="40 runs where nothing is said of runs")
    protect: list[Path] = Field(default_factory=list, max_length=200, description="evaluation files and folders")
    script: Path | None = Field(None, description="where the goal names none and several could be meant")
    metric: MetricIn | None = Field(None, description="where the goal names none")
    parameters: PlainJson = Field(default_factory=dict, description="what is searched, as in a sweep")
    seeds: Seeds | None = Field(None, description="of each configuration that counts: how many, or which; 3")
    gpus: int | None = Field(None, ge=0, le=1024, description="of each run")
    parallel: int | None = Field(None, ge=1, le=100_000, description="its runs at a time")


class WildResume(In):
    budget: BudgetIn | None = Field(None, description="the whole budget from now on; a person's to give")


class WildSteer(In):
    text: Annotated[Text, Field(max_length=4000, pattern=NOT_BLANK)]


class WildMetricOut(BaseModel):
    key: str
    goal: Literal["min", "max"]


class WildCriterionOut(BaseModel):
    text: str
    threshold: float | None


class WildBudgetOut(BaseModel):
    gpu_hours: float | None = None
    runs: float | None = None
    wall_seconds: float | None = None


class WildUsedOut(BaseModel):
    gpu_hours: float
    runs: int
    wall_seconds: float
    tokens: int
    cost: float


class WildFoundOut(BaseModel):
    run_id: str
    params: dict[str, Any]
    mean: float
    std: float | None
    n: int
    number: int = Field(description="of its iteration")


class WildResultOut(BaseModel):
    mean: float | None
    std: float | None
    n: int
    text: str


class WildDecisionOut(BaseModel):
    verdict: IterationVerdict
    reason: str


class IterationOut(BaseModel):
    number: int
    parent: int | None
    hypothesis: str
    change: dict[str, Any]
    params: dict[str, Any]
    run_ids: list[str]
    result: WildResultOut | None
    decision: WildDecisionOut | None
    status: IterationStatus
    started_at: str
    ended_at: str | None


class SteeringOut(BaseModel):
    text: str
    at: str
    taken_in: int | None


class ProtectedOut(BaseModel):
    path: str
    sha256: str
    reason: str


class WildOut(BaseModel):
    id: str
    goal: str
    session_id: str | None
    status: WildStatus
    status_reason: str
    sweep_id: str
    script: str
    metric: WildMetricOut
    criterion: WildCriterionOut
    parameters: dict[str, Any]
    fixed: dict[str, Any]
    seeds: list[int]
    search: str = Field(description="`rules`, or the model that proposes")
    budget: WildBudgetOut
    used: WildUsedOut
    best: WildFoundOut | None
    baseline: WildFoundOut | None
    iterations: list[IterationOut]
    steering: list[SteeringOut]
    protected: list[ProtectedOut]
    notes: list[str]
    report: str | None
    created_by: str
    created_at: str
    ended_at: str | None
