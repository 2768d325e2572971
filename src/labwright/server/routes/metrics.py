"""A run's metrics and artifacts, and one metric over several runs."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, BeforeValidator, Field, GetPydanticSchema, ValidatorFunctionWrapHandler
from pydantic_core import from_json
from pydantic_core.core_schema import no_info_wrap_validator_function

from labwright.domain.actor import Scope
from labwright.domain.errors import NotFound
from labwright.paths import ARTIFACTS
from labwright.server.auth import READERS, allow
from labwright.server.express import Express
from labwright.server.models.fields import BIG, In, Text
from labwright.server.requests import ReferenceRoute, idempotency_key, lab_of
from labwright.services.metrics import compare, export
from labwright.services.metrics import verbs as metrics
from labwright.services.runs import verbs as runs

router = APIRouter(route_class=ReferenceRoute, tags=["metrics"])
_MAX_POINTS = 10_000
_MAX_KEY = 1024
_MAX_TIME = 1e11
_EXPORT_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


Axis = Literal["step", "time", "epoch"]
Keys = Annotated[
    list[str] | None, Query(description="repeat it, or use commas (a key with a comma is matched first); default: all")
]
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
_LOGGERS = allow(Scope.AGENT, Scope.RUN)


class AcceptedOut(BaseModel):
    accepted: int


def _seconds(given: Any) -> Any:
    try:
        moment = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        return given
    if moment.tzinfo is None:
        raise ValueError("must have a time zone, as in 2026-01-02T03:04:05Z")
    return moment.timestamp()


class PointIn(In):
    """`time` is a timestamp, or seconds since 1970, which is faster for many points."""

    key: Annotated[Text, Field(min_length=1, max_length=_MAX_KEY)]
    step: int = Field(ge=-BIG, le=BIG)
    value: float | Literal["NaN", "Infinity", "-Infinity"]
    time: Annotated[float | None, BeforeValidator(_seconds, json_schema_input_type=float | datetime | None)] = Field(
        None, ge=0, le=_MAX_TIME, allow_inf_nan=False
    )


def _checked(given: Any, check: ValidatorFunctionWrapHandler) -> list[metrics.Point]:
    """Return the points. Pydantic models are slow, so they are built only to report errors."""
    try:
        return _valid_points(given)
    except (ValueError, TypeError, KeyError, AttributeError):
        return [(point.key, point.step, point.value, point.time) for point in check(given)]


def _valid_points(given: Any) -> list[metrics.Point]:
    if type(given) is not list or not 0 < len(given) <= _MAX_POINTS:
        raise ValueError
    points: list[metrics.Point] = []
    keys: set[str] = set()
    for point in given:
        key, step, value, moment = point["key"], point["step"], point["value"], point.get("time", 0.0)
        if key not in keys:
            if not (type(key) is str and key.isascii() and 0 < len(key) <= _MAX_KEY and "\0" not in key):
                raise ValueError
            keys.add(key)
        if type(step) is not int or type(value) is not float or type(moment) is not float:
            raise ValueError
        if len(point) != 3 + ("time" in point) or not (-BIG <= step <= BIG and 0.0 <= moment <= _MAX_TIME):
            raise ValueError
        points.append((key, step, value, moment))
    return points


class PointsIn(In):
    points: Annotated[
        list[metrics.Point],
        GetPydanticSchema(
            lambda _type, handler: no_info_wrap_validator_function(
                _checked, handler.generate_schema(Annotated[list[PointIn], Field(min_length=1, max_length=_MAX_POINTS)])
            )
        ),
    ]


@router.post("/runs/{run_id}/metrics", status_code=202, response_model=AcceptedOut, dependencies=[_LOGGERS])
def add_metrics(run_id: str, body: PointsIn, request: Request, key: Key = None) -> Response:
    """Add points. Send NaN and infinities as the strings "NaN", "Infinity" and "-Infinity"."""
    once = idempotency_key(key, request, body)
    accepted = metrics.add_points(lab_of(request), run_id, body.points, time.time(), once)
    return JSONResponse({"accepted": accepted}, 202)


EXPRESS = Express(
    path=re.compile("/runs/(?P<run_id>[^/]+)/metrics"),
    endpoint=add_metrics,
    form=PointsIn,
    permission=_LOGGERS,
    parse=from_json,
    takes_key=True,
)


@router.get("/runs/{run_id}/metrics", dependencies=[allow(Scope.VIEWER, Scope.PLANNER, Scope.AGENT, Scope.RUN)])
def get_metrics(
    run_id: str,
    request: Request,
    keys: Keys = None,
    max_points: Annotated[int, Query(ge=2, le=100_000)] = 1000,
    x: Axis = "step",
    source: str | None = None,
) -> dict[str, Any]:
    """Return series, downsampled to `max_points` with min and max kept. `unknown` lists keys that the run lacks."""
    return metrics.read(lab_of(request), run_id, keys, max_points, x, source)


@router.get("/runs/{run_id}/system", dependencies=[READERS()])
def get_system(
    run_id: str,
    request: Request,
    max_points: Annotated[int, Query(ge=2, le=100_000)] = 1000,
    x: Axis = "time",
) -> dict[str, Any]:
    """Return CPU, memory, disk and GPU use of a run over time, downsampled with min and max kept."""
    return metrics.system(lab_of(request), run_id, max_points, x)


@router.get(
    "/runs/{run_id}/metrics/export",
    dependencies=[READERS()],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {}, "application/x-ndjson": {}}}},
)
def export_metrics(
    run_id: str,
    request: Request,
    format: Literal["csv", "jsonl"] = "csv",
    keys: Keys = None,
    with_run: Annotated[bool, Query(description="add a first column `run_id`")] = False,
) -> StreamingResponse:
    """Export every stored point of every source and attempt, in order of arrival."""
    lines = export.export(lab_of(request), run_id, format, keys, with_run=with_run)
    headers = {"Content-Disposition": f'attachment; filename="{run_id}.{format}"'}
    return StreamingResponse(lines, media_type=_EXPORT_TYPES[format], headers=headers)


@router.get("/metrics/compare", dependencies=[READERS()])
def compare_metrics(
    request: Request,
    run_ids: Annotated[str, Query(max_length=20_000, description="ids or names of runs, comma-separated")],
    key: Annotated[str, Query(max_length=1024)],
    max_points: Annotated[int, Query(ge=2, le=100_000)] = 1000,
    x: Annotated[Axis, Query(description="time: seconds since each run's start")] = "step",
    groups: Annotated[bool, Query(description="false omits mean and std, which is faster")] = True,
) -> dict[str, Any]:
    """Compare one metric over several runs, with mean and std over runs that differ only in their seed."""
    ids = [name.strip() for name in run_ids.split(",") if name.strip()]
    return compare.compare(lab_of(request), ids, key, max_points, x, grouped=groups)


@router.get("/runs/{run_id}/artifacts", dependencies=[READERS()])
def list_artifacts(run_id: str, request: Request) -> list[dict[str, Any]]:
    return metrics.artifacts(lab_of(request), run_id)


@router.get("/runs/{run_id}/artifacts/{path:path}", dependencies=[READERS()], response_class=FileResponse)
def get_artifact(run_id: str, path: str, request: Request) -> FileResponse:
    """Return a file of the run's artifacts folder, as an attachment that browsers do not open."""
    lab = lab_of(request)
    runs.get(lab, run_id)
    root = Path(lab.paths.run(run_id).dir).resolve() / ARTIFACTS
    found = (root / path).resolve()
    if not found.is_relative_to(root) or not found.is_file():
        raise NotFound(f"Run {run_id} has no artifact {path}.", hint="List them with GET /runs/{id}/artifacts.")
    headers = {"Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff"}
    return FileResponse(found, filename=found.name, content_disposition_type="attachment", headers=headers)
