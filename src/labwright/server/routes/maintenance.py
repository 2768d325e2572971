"""What keeps the house in order: sizes, garbage collection, a backup now."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from labwright.server.auth import PERSON, READERS, actor_of
from labwright.server.models.fields import In
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.services import housekeeping

router = APIRouter(route_class=StrictJsonRoute, tags=["maintenance"])


class GcIn(In):
    dry_run: bool = False


@router.get("/storage", dependencies=[READERS()])
def storage(request: Request) -> dict[str, Any]:
    """How much disk each part of the state folder takes."""
    return housekeeping.sizes(lab_of(request))


@router.post("/gc", dependencies=[PERSON()])
def collect_garbage(request: Request, body: GcIn | None = None) -> dict[str, Any]:
    """Apply the retention settings; `dry_run` only tells what it would free."""
    return housekeeping.collect(lab_of(request), actor_of(request), dry_run=bool(body and body.dry_run))


@router.post("/backup", dependencies=[PERSON()])
def backup(request: Request) -> dict[str, str]:
    """Write an online backup of the database now."""
    return {"path": housekeeping.backup(lab_of(request))}
