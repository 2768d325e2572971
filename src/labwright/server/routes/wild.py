"""/wild: a loop of experiments that continues until the evidence shows that a goal is met."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, Field

from labwright.agent.wild import verbs
from labwright.agent.wild.wanted import NewWild
from labwright.domain.wild import IterationStatus, IterationVerdict, Wild, WildStatus
from labwright.server.auth import READERS, WRITERS, actor_of
from labwright.server.models.fields import NOT_BLANK, Id, In, PlainJson, Text
from labwright.server.models.sweeps import BudgetIn, MetricIn, Seeds, seed_values
from labwright.server.requests import StrictJsonRoute, idempotency_key, lab_of
from labwright.services import ownership

router = APIRouter(prefix="/wild", route_class=StrictJsonRoute, tags=["wild"])
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Goal = Annotated[Text, Field(max_length=20_000, pattern=NOT_BLANK)]
Path = Annotated[Text, Field(min_length=1, max_length=4096)]


class WildIn(In):
    goal: Goal = Field(description="in plain English, with its own success criterion: reach val_acc 0.9 by tuning lr")
    session_id: Id | None = Field(None, description="the conversation that gets progress reports")
    budget: BudgetIn | None = Field(None, description="default: 40 runs")
    protect: list[Path] = Field(default_factory=list, max_length=200, description="evaluation files and folders")
    script: Path | None = Field(None, description="needed if the goal names no script and several are possible")
    metric: MetricIn | None = Field(None, description="needed if the goal names no metric")
    parameters: PlainJson = Field(default_factory=dict, description="the search space, as in a sweep")
    seeds: Seeds | None = Field(None, description="seeds per configuration: a number or a list; default: 3")
    gpus: int | None = Field(None, ge=0, le=1024, description="GPUs per run")
    parallel: int | None = Field(None, ge=1, le=100_000, description="max parallel runs of this loop")


class WildResume(In):
    budget: BudgetIn | None = Field(None, description="the new total budget; only a person may set it")


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
    number: int = Field(description="number of its iteration")


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


@router.post("/start", status_code=201, dependencies=[WRITERS()])
def start_wild(body: WildIn, request: Request, key: Key = None) -> WildOut:
    """Start a loop. If the goal is not clear, the response is a 422 with a question."""
    given = body.model_dump(include={"goal", "session_id", "script", "parameters", "gpus", "parallel"})
    wanted = NewWild(
        **given,
        budget=body.budget.value() if body.budget else {},
        protect=tuple(body.protect),
        metric=body.metric.model_dump() if body.metric else None,
        seeds=seed_values(body.seeds),
    )
    search: str = request.app.state.models.proposer or verbs.RULES
    once = idempotency_key(key, request, body)
    return _shown(request, verbs.start(lab_of(request), wanted, search, actor_of(request), once))


@router.get("", dependencies=[READERS()])
def list_wild(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[WildOut]:
    """List loops, newest first."""
    found, following = verbs.page(lab_of(request), limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return [_shown(request, wild) for wild in found]


@router.get("/{wild_id}", dependencies=[READERS()])
def get_wild(wild_id: str, request: Request) -> WildOut:
    return _shown(request, verbs.get(lab_of(request), wild_id))


@router.post("/{wild_id}/pause", dependencies=[WRITERS()])
def pause_wild(wild_id: str, request: Request) -> WildOut:
    """Start no more runs; running ones continue. An agent may pause only its own loops."""
    ownership.check_wild(lab_of(request), wild_id, actor_of(request))
    return _shown(request, verbs.pause(lab_of(request), wild_id, actor_of(request)))


@router.post("/{wild_id}/resume", dependencies=[WRITERS()])
def resume_wild(wild_id: str, request: Request, body: WildResume | None = None) -> WildOut:
    """Resume a paused loop. Only a person may send a new budget. An agent may resume only its own loops."""
    ownership.check_wild(lab_of(request), wild_id, actor_of(request))
    budget: dict[str, Any] = body.budget.value() if body and body.budget else {}
    return _shown(request, verbs.resume(lab_of(request), wild_id, actor_of(request), budget))


@router.post("/{wild_id}/stop", dependencies=[WRITERS()])
def stop_wild(wild_id: str, request: Request) -> WildOut:
    """Stop a loop with all its runs and write its report. An agent may stop only its own loops."""
    ownership.check_wild(lab_of(request), wild_id, actor_of(request))
    return _shown(request, verbs.stop(lab_of(request), wild_id, actor_of(request)))


@router.post("/{wild_id}/steer", dependencies=[WRITERS()])
def steer_wild(wild_id: str, body: WildSteer, request: Request, key: Key = None) -> WildOut:
    """Send guidance for the next proposals. An agent may steer only its own loops."""
    ownership.check_wild(lab_of(request), wild_id, actor_of(request))
    once = idempotency_key(key, request, body)
    return _shown(request, verbs.steer(lab_of(request), wild_id, body.text, actor_of(request), once))


def _shown(request: Request, wild: Wild) -> WildOut:
    return WildOut(**verbs.view(lab_of(request), wild))
