"""The server itself: health, API docs, the caller, settings, storage, backups, Prometheus figures."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, PlainTextResponse
from pydantic import BaseModel, Field

from labwright.server.auth import PERSON, READERS, actor_of
from labwright.server.models.fields import In
from labwright.server.models.meta import HealthOut, ViewIn, ViewOut
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.server.routes.models import models_of
from labwright.services import housekeeping, saved_views, settings
from labwright.services.figures import Figure, figures
from labwright.store.views import SavedView
from labwright.version import __version__

router = APIRouter(route_class=StrictJsonRoute, tags=["server"])
Value = str | bool | int | float
Changes = Annotated[dict[str, Value | None], Body(min_length=1, max_length=100)]


class WhoOut(BaseModel):
    scope: str
    name: str
    project: str = Field(description="project folder")
    version: str


class SettingOut(BaseModel):
    name: str
    value: Value = Field(description="current value")
    default: Value
    bounds: tuple[float, float] | None
    following: Value = Field(description="value after the next start of the server")
    by_variable: bool = Field(description="whether a variable in the server's environment overrides the file")
    editable: bool = Field(description="whether PATCH changes it")
    at_start: bool = Field(description="whether a change needs a restart of the server")


@router.get("/whoami", dependencies=[READERS()])
def whoami(request: Request) -> WhoOut:
    """Return the scope of the token, so that a client offers only permitted actions."""
    actor, lab = actor_of(request), lab_of(request)
    return WhoOut(scope=actor.scope, name=actor.name, project=str(lab.paths.project), version=__version__)


@router.get("/settings", response_model=list[SettingOut], dependencies=[READERS()])
def get_settings(request: Request) -> list[dict[str, Any]]:
    """Return every setting, now and after the next start. Settings contain no secrets."""
    return settings.view(lab_of(request))


@router.patch("/settings", response_model=list[SettingOut], dependencies=[PERSON()])
def change_settings(body: Changes, request: Request) -> list[dict[str, Any]]:
    """Change settings, all or none; null restores a default. They are written to `labwright.toml`."""
    lab, models = lab_of(request), models_of(request)
    settings.change(lab, body, actor_of(request), models)
    lab.local.withhold(models.key_variables)
    return settings.view(lab)


_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


@router.get("/health")
def health(request: Request) -> HealthOut:
    """Return the health. `degraded` means that runs cannot start; `labwright doctor` says why."""
    lab = lab_of(request)
    return HealthOut(status="ok" if lab.is_healthy else "degraded", version=__version__)


@router.get("/docs", include_in_schema=False)
def docs() -> HTMLResponse:
    """Return Swagger UI from local files, so that it works offline."""
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title="Labwright API",
        swagger_js_url="assets/swagger-ui-bundle.js",
        swagger_css_url="assets/swagger-ui.css",
        swagger_favicon_url="assets/favicon.svg",
    )
    page.headers["Content-Security-Policy"] = _docs_policy(bytes(page.body))
    return page


def _docs_policy(page: bytes) -> str:
    """Return a policy that allows the inline script of Swagger UI by its hash, and its inline styles."""
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _INLINE_SCRIPT.findall(page)]
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in hashes)])
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class GcIn(In):
    dry_run: bool = False


@router.get("/storage", dependencies=[READERS()])
def storage(request: Request) -> dict[str, Any]:
    """Return the disk use of each part of the state folder."""
    return housekeeping.sizes(lab_of(request))


@router.post("/gc", dependencies=[PERSON()])
def collect_garbage(request: Request, body: GcIn | None = None) -> dict[str, Any]:
    """Apply the retention settings. With `dry_run`, only report what would be freed."""
    return housekeeping.collect(lab_of(request), actor_of(request), dry_run=bool(body and body.dry_run))


@router.post("/backup", dependencies=[PERSON()])
def backup(request: Request) -> dict[str, str]:
    """Back up the database now."""
    return {"path": housekeeping.backup(lab_of(request))}


_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics/prometheus", response_class=PlainTextResponse, dependencies=[READERS()])
def prometheus(request: Request) -> PlainTextResponse:
    """Return figures for Prometheus: runs by status, alerts, GPUs, disk, and the server process."""
    lines = (line for figure in figures(lab_of(request)) for line in _lines(figure))
    return PlainTextResponse("".join(f"{line}\n" for line in lines), media_type=_FORMAT)


def _lines(figure: Figure) -> Iterator[str]:
    yield f"# HELP {figure.name} {figure.help}"
    yield f"# TYPE {figure.name} {'counter' if figure.only_grows else 'gauge'}"
    for labels, value in figure.values.items():
        named = ",".join(f'{name}="{text}"' for name, text in labels)
        yield f"{figure.name}{{{named}}} {value:.15g}" if named else f"{figure.name} {value:.15g}"


@router.get("/views", response_model=list[ViewOut], dependencies=[READERS()])
def list_views(request: Request) -> list[dict[str, Any]]:
    """List all saved views by name."""
    return [{"name": view.name, "query": view.query} for view in saved_views.all_views(lab_of(request))]


@router.put("/views", response_model=ViewOut, dependencies=[PERSON()])
def save_view(body: ViewIn, request: Request) -> dict[str, Any]:
    """Save a view. It replaces a view of the same name."""
    saved_views.save(lab_of(request), SavedView(name=body.name, query=body.query), actor_of(request))
    return {"name": body.name, "query": body.query}


@router.delete("/views", status_code=204, dependencies=[PERSON()])
def delete_view(name: Annotated[str, Query(max_length=60)], request: Request) -> Response:
    """Delete a view. Its name is a query parameter, since a path cannot hold every name."""
    saved_views.delete(lab_of(request), name, actor_of(request))
    return Response(status_code=204)
