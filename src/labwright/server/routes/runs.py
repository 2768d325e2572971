"""/runs and its verbs."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.background import BackgroundTask

from labwright.domain.actor import Scope
from labwright.domain.errors import Invalid
from labwright.domain.run import Run, RunStatus
from labwright.processes import ProcessIdentity
from labwright.server.auth import PERSON, READERS, WRITERS, actor_of, allow
from labwright.server.express import Express
from labwright.server.models.runs import AlertIn, ExternalRunIn, ImportIn, RerunIn, RunIn, RunOut, RunPatch
from labwright.server.requests import StrictJsonRoute, idempotency_key, lab_of, strict_loads
from labwright.services import alerts, ownership
from labwright.services.runs import external, queue
from labwright.services.runs import verbs as runs
from labwright.services.runs.new_run import NewRun
from labwright.store import runs as stored

router = APIRouter(prefix="/runs", route_class=StrictJsonRoute, tags=["runs"])
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


def _run(run: Run, status: int = 200) -> Response:
    return Response(run.to_json(), status, media_type="application/json")


@router.post("", status_code=201, response_model=RunOut, dependencies=[WRITERS()])
def create_run(body: RunIn, request: Request, key: Key = None) -> Response:
    """Create a run. With `auto_start` it is queued immediately."""
    new = NewRun(**body.values(RunIn))
    return _run(runs.create(lab_of(request), new, actor_of(request), idempotency_key(key, request, body)), 201)


EXPRESS = Express(
    path=re.compile("/runs"),
    endpoint=create_run,
    form=RunIn,
    permission=WRITERS(),
    parse=strict_loads,
    takes_key=True,
)


@router.post("/external", status_code=201, response_model=RunOut, dependencies=[WRITERS()])
def create_external_run(body: ExternalRunIn, request: Request, key: Key = None) -> Response:
    """Track a process that the user started and that logs with the SDK."""
    process = ProcessIdentity(pid=body.pid, start_time=body.start_time, boot_id=body.boot_id, host=body.host)
    new = NewRun(
        command=body.command,
        name=body.name,
        workdir=body.workdir,
        params=body.params,
        tags=tuple(body.tags),
        notes=body.notes,
    )
    once = idempotency_key(key, request, body)
    run = external.create(lab_of(request), new, process, actor_of(request), once, body.answer_by)
    response = _run(run, 201)
    response.background = BackgroundTask(external.keep_code, lab_of(request), run)
    return response


@router.post("/import", status_code=201, response_model=RunOut, dependencies=[PERSON()])
def import_run(body: ImportIn, request: Request) -> Response:
    """Import a folder that was logged without a server. If it has been imported before, the response is 200."""
    from labwright.services.runs import imports  # here, because it is rarely used

    found = imports.import_folder(lab_of(request), body.path, actor_of(request), outside=body.outside)
    return _run(found.run, 200 if found.already_there else 201)


@router.get("", response_model=list[RunOut], dependencies=[READERS()])
def list_runs(
    request: Request,
    ids: Annotated[str | None, Query(max_length=20_000, description="one or more, comma-separated")] = None,
    status: Annotated[str | None, Query(description="one or more, comma-separated")] = None,
    sweep_id: str | None = None,
    plan_id: str | None = None,
    q: Annotated[str | None, Query(max_length=1000, description="text in the name or the command")] = None,
    tag: str | None = None,
    archived: Annotated[str, Query(pattern="^(true|false|all)$")] = "false",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
    sort: str = "-created_at",
) -> Response:
    """List runs, newest first. For the next page, send `X-Next-Cursor` of the response as `cursor`."""
    if sort not in stored.SORTS:
        raise Invalid(f"Runs cannot be sorted by {sort!r}.", hint=f"Choose: {', '.join(stored.SORTS)}.")
    wanted = stored.Filter(
        ids=_listed(ids),
        status=_statuses(status),
        sweep_id=sweep_id,
        plan_id=plan_id,
        q=q,
        tag=tag,
        archived={"true": True, "false": False, "all": None}[archived],
        sort=sort,
    )
    lab = lab_of(request)
    records, following = stored.page(lab.db.reader(), wanted, limit, cursor)
    headers = {"X-Next-Cursor": following} if following else {}
    return Response(f"[{','.join(queue.with_reasons(lab, records))}]", media_type="application/json", headers=headers)


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _statuses(text: str | None) -> tuple[str, ...]:
    names = _listed(text)
    for name in names:
        if name not in set(RunStatus):
            raise Invalid(f"{name!r} is not a status.", hint=f"Choose: {', '.join(RunStatus)}.")
    return names


@router.get(
    "/{run_id}", response_model=RunOut, dependencies=[allow(Scope.VIEWER, Scope.PLANNER, Scope.AGENT, Scope.RUN)]
)
def get_run(run_id: str, request: Request) -> Response:
    """Return one run."""
    lab = lab_of(request)
    return _run(queue.with_reason(lab, runs.get(lab, run_id)))


@router.patch("/{run_id}", response_model=RunOut, dependencies=[WRITERS()])
def change_run(run_id: str, body: RunPatch, request: Request) -> Response:
    """Change name, tags, notes or priority."""
    changes: dict[str, Any] = body.model_dump(exclude_none=True)
    if "tags" in changes:
        changes["tags"] = tuple(changes["tags"])
    return _run(runs.update(lab_of(request), run_id, changes, actor_of(request)))


@router.delete("/{run_id}", status_code=204, dependencies=[PERSON()])
def delete_run(run_id: str, request: Request) -> Response:
    """Delete an ended run with all its files."""
    runs.delete(lab_of(request), run_id, actor_of(request))
    return Response(status_code=204)


@router.post("/{run_id}/start", response_model=RunOut, dependencies=[WRITERS()])
def start_run(run_id: str, request: Request) -> Response:
    """Queue a ready run."""
    return _run(runs.start(lab_of(request), run_id, actor_of(request)))


@router.post("/{run_id}/stop", response_model=RunOut, dependencies=[WRITERS()])
def stop_run(run_id: str, request: Request) -> Response:
    """Stop a run and all its processes: TERM, grace period, KILL. An agent may stop only its own runs."""
    ownership.check_run(lab_of(request), run_id, actor_of(request))
    return _run(runs.stop(lab_of(request), run_id, actor_of(request)))


@router.post("/{run_id}/rerun", status_code=201, response_model=RunOut, dependencies=[WRITERS()])
def rerun_run(run_id: str, request: Request, body: RerunIn | None = None, key: Key = None) -> Response:
    """Create a new run with the same command and settings."""
    body = body or RerunIn()
    changes = {name: getattr(body, name) for name in ("command", "env", "secrets") if getattr(body, name) is not None}
    if body.gpuwrap_config:
        changes["gpuwrap_config"] = body.gpuwrap_config.value()
    changes["auto_start"] = body.auto_start
    once = idempotency_key(key, request, body)
    return _run(runs.rerun(lab_of(request), run_id, actor_of(request), changes, once), 201)


@router.post("/{run_id}/archive", response_model=RunOut, dependencies=[WRITERS()])
def archive_run(run_id: str, request: Request) -> Response:
    """Hide an ended run from the default lists."""
    return _run(runs.archive(lab_of(request), run_id, actor_of(request)))


@router.post("/{run_id}/unarchive", response_model=RunOut, dependencies=[WRITERS()])
def unarchive_run(run_id: str, request: Request) -> Response:
    """Show an archived run in the default lists again."""
    return _run(runs.unarchive(lab_of(request), run_id, actor_of(request)))


@router.post("/{run_id}/alerts", status_code=201, dependencies=[allow(Scope.AGENT, Scope.RUN)])
def raise_alert(run_id: str, body: AlertIn, request: Request, key: Key = None) -> JSONResponse:
    """Raise an alert about this run, with choices for the user."""
    alert = alerts.raise_for_run(
        lab_of(request),
        run_id,
        message=body.message,
        choices=tuple(body.choices),
        severity=body.severity,
        actor=actor_of(request),
        key=idempotency_key(key, request, body),
    )
    return JSONResponse(alert.to_dict(), 201)


@router.get("/{run_id}/diff", dependencies=[READERS()])
def diff_run(run_id: str, request: Request) -> JSONResponse:
    """Return how the code has changed since this run was submitted."""
    return JSONResponse(runs.diff(lab_of(request), run_id))
