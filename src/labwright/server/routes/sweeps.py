"""/sweeps."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from labwright.domain.sweep import Sweep, SweepMethod
from labwright.server.auth import READERS, WRITERS, actor_of
from labwright.server.models.runs import RunSettings
from labwright.server.models.sweeps import (
    SweepAddedOut,
    SweepExtension,
    SweepIn,
    SweepOut,
    SweepResultsOut,
    SweepResume,
    WildSweepIn,
    seed_values,
)
from labwright.server.requests import StrictJsonRoute, idempotency_key, lab_of
from labwright.services import ownership
from labwright.services.runs.new_run import NewRun
from labwright.services.sweeps import results as sweep_views
from labwright.services.sweeps import verbs as sweeps
from labwright.services.sweeps.extension import Extension
from labwright.services.sweeps.new_sweep import NewSweep
from labwright.services.sweeps.verbs import Added

router = APIRouter(prefix="/sweeps", route_class=StrictJsonRoute, tags=["sweeps"])
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
_EXPORT_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


@router.post("/wild", status_code=201, dependencies=[WRITERS()])
def create_wild_sweep(body: WildSweepIn, request: Request, key: Key = None) -> SweepOut:
    """Create an empty sweep that runs join with `sweep_id`."""
    sweep = sweeps.create_wild(
        lab_of(request),
        name=body.name,
        goal=body.goal,
        chat_session_id=body.chat_session_id,
        parallel=body.parallel,
        metric=body.metric.model_dump() if body.metric else None,
        actor=actor_of(request),
        key=idempotency_key(key, request, body),
    )
    return _shown(request, sweep)


@router.post("", status_code=201, dependencies=[WRITERS()])
def create_sweep(body: SweepIn, request: Request, key: Key = None) -> SweepOut:
    """Create many runs from one command and its parameters. With `auto_start` they start as capacity allows."""
    once = idempotency_key(key, request, body)
    return _shown(request, sweeps.create(lab_of(request), _new_sweep(body), actor_of(request), once))


def _new_sweep(body: SweepIn) -> NewSweep:
    return NewSweep(
        name=body.name,
        base_command=body.base_command,
        parameters=body.parameters,
        method=SweepMethod(body.method),
        common=NewRun(command=body.base_command, **body.values(RunSettings)),
        goal=body.goal,
        metric=body.metric.model_dump() if body.metric else None,
        max_runs=body.max_runs,
        parallel=body.parallel,
        seeds=seed_values(body.seeds),
        early_stop=body.early_stop.model_dump() if body.early_stop else None,
        budget=body.budget.value() if body.budget else {},
        sampling_seed=body.sampling_seed,
        chat_session_id=body.chat_session_id,
        auto_start=body.auto_start,
        again=body.again,
    )


@router.get("", response_model=list[SweepOut], dependencies=[READERS()])
def list_sweeps(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[dict[str, Any]]:
    """List sweeps, newest first."""
    found, following = sweep_views.page(lab_of(request), limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return found


@router.get("/{sweep_id}", dependencies=[READERS()])
def get_sweep(sweep_id: str, request: Request) -> SweepOut:
    """Return one sweep with its progress and its best configuration."""
    return SweepOut(**sweep_views.get(lab_of(request), sweep_id))


@router.get("/{sweep_id}/results", dependencies=[READERS()])
def get_sweep_results(
    sweep_id: str,
    request: Request,
    key: Annotated[str | None, Query(max_length=1024, description="a metric other than the sweep's own")] = None,
    goal: Literal["min", "max"] | None = None,
    limit: Annotated[int, Query(ge=1, le=50_000)] = 100,
) -> SweepResultsOut:
    """Return mean and std per configuration, best first, with parameter importance and confidence in the best."""
    return SweepResultsOut(**sweep_views.results(lab_of(request), sweep_id, key, goal, limit))


@router.get(
    "/{sweep_id}/results/export",
    dependencies=[READERS()],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {}, "application/x-ndjson": {}}}},
)
def export_sweep_results(
    sweep_id: str,
    request: Request,
    format: Literal["csv", "jsonl"] = "csv",
    key: Annotated[str | None, Query(max_length=1024)] = None,
    goal: Literal["min", "max"] | None = None,
) -> StreamingResponse:
    """Export the whole table, one line per configuration."""
    lines = sweep_views.export(lab_of(request), sweep_id, format, key, goal)
    headers = {"Content-Disposition": f'attachment; filename="{sweep_id}.{format}"'}
    return StreamingResponse(lines, media_type=_EXPORT_TYPES[format], headers=headers)


@router.post("/{sweep_id}/start", dependencies=[WRITERS()])
def start_sweep(sweep_id: str, request: Request) -> SweepOut:
    """Start a draft sweep."""
    return _shown(request, sweeps.start(lab_of(request), sweep_id, actor_of(request)))


@router.post("/{sweep_id}/stop", dependencies=[WRITERS()])
def stop_sweep(sweep_id: str, request: Request) -> SweepOut:
    """Stop a sweep and all its runs. An agent may stop only its own sweeps."""
    ownership.check_sweep(lab_of(request), sweep_id, actor_of(request))
    return _shown(request, sweeps.stop(lab_of(request), sweep_id, actor_of(request)))


@router.post("/{sweep_id}/pause", dependencies=[WRITERS()])
def pause_sweep(sweep_id: str, request: Request) -> SweepOut:
    """Start no more runs; running ones continue. An agent may pause only its own sweeps."""
    ownership.check_sweep(lab_of(request), sweep_id, actor_of(request))
    return _shown(request, sweeps.pause(lab_of(request), sweep_id, actor_of(request)))


@router.post("/{sweep_id}/resume", dependencies=[WRITERS()])
def resume_sweep(sweep_id: str, request: Request, body: SweepResume | None = None) -> SweepOut:
    """Resume a paused sweep. Only a person may send a new budget. An agent may resume only its own sweeps."""
    ownership.check_sweep(lab_of(request), sweep_id, actor_of(request))
    budget = body.budget.value() if body and body.budget else {}
    return _shown(request, sweeps.resume(lab_of(request), sweep_id, actor_of(request), budget))


@router.post("/{sweep_id}/retry-failed", dependencies=[WRITERS()])
def retry_failed_runs(sweep_id: str, request: Request) -> SweepAddedOut:
    """Create new runs for failed and lost ones."""
    return _added(request, sweeps.retry_failed(lab_of(request), sweep_id, actor_of(request)))


@router.post("/{sweep_id}/extend", dependencies=[WRITERS()])
def extend_sweep(sweep_id: str, body: SweepExtension, request: Request) -> SweepAddedOut:
    """Add values, seeds, runs or budget. Existing runs are not repeated."""
    extension = Extension(
        parameters=body.parameters,
        seeds=seed_values(body.seeds),
        max_runs=body.max_runs,
        budget=body.budget.value() if body.budget else {},
        parallel=body.parallel,
    )
    return _added(request, sweeps.extend(lab_of(request), sweep_id, extension, actor_of(request)))


def _shown(request: Request, sweep: Sweep) -> SweepOut:
    return SweepOut(**sweep_views.view(lab_of(request), sweep))


def _added(request: Request, done: Added) -> SweepAddedOut:
    shown = sweep_views.view(lab_of(request), done.sweep)
    return SweepAddedOut(**shown, added=done.added, already=done.already)
