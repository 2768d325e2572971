"""Who is calling, and with which settings the server runs. Settings are read at start; here they are only shown."""

from __future__ import annotations

from dataclasses import fields

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from labwright.server.auth import READERS, actor_of
from labwright.server.context import lab_of
from labwright.settings import BOUNDS, Settings
from labwright.version import __version__

router = APIRouter(tags=["server"])


class WhoOut(BaseModel):
    scope: str
    name: str
    project: str = Field(description="the project's folder")
    version: str


class SettingOut(BaseModel):
    name: str
    value: str | float | bool
    default: str | float | bool
    bounds: tuple[float, float] | None


@router.get("/whoami", dependencies=[READERS()])
def whoami(request: Request) -> WhoOut:
    """The scope of the token, so that a client offers only what it may do."""
    actor, lab = actor_of(request), lab_of(request)
    return WhoOut(scope=actor.scope, name=actor.name, project=str(lab.paths.project), version=__version__)


@router.get("/settings", dependencies=[READERS()])
def get_settings(request: Request) -> list[SettingOut]:
    """Every setting as the server read it at its start, with its default. No secret is a setting."""
    settings = lab_of(request).settings
    return [
        SettingOut(
            name=field.name,
            value=getattr(settings, field.name),
            default=field.default,  # type: ignore[arg-type]
            bounds=BOUNDS.get(field.name),
        )
        for field in fields(Settings)
    ]
