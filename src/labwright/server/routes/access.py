"""Who is calling, and with which settings the server runs. Only a person changes them; no secret is one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, Field

from labwright.server.auth import PERSON, READERS, actor_of
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.server.routes.models import models_of
from labwright.services import settings
from labwright.version import __version__

router = APIRouter(route_class=StrictJsonRoute, tags=["server"])
Value = str | bool | int | float
Changes = Annotated[dict[str, Value | None], Body(min_length=1, max_length=100)]


class WhoOut(BaseModel):
    scope: str
    name: str
    project: str = Field(description="the project's folder")
    version: str


class SettingOut(BaseModel):
    name: str
    value: Value = Field(description="what holds now")
    default: Value
    bounds: tuple[float, float] | None
    following: Value = Field(description="what holds after the next start of the server")
    by_variable: bool = Field(description="a variable of the server's environment sets it, and wins over the file")
    editable: bool = Field(description="whether PATCH changes it")
    at_start: bool = Field(description="whether a change takes a start of the server")


@router.get("/whoami", dependencies=[READERS()])
def whoami(request: Request) -> WhoOut:
    """The scope of the token, so that a client offers only what it may do."""
    actor, lab = actor_of(request), lab_of(request)
    return WhoOut(scope=actor.scope, name=actor.name, project=str(lab.paths.project), version=__version__)


@router.get("/settings", response_model=list[SettingOut], dependencies=[READERS()])
def get_settings(request: Request) -> list[dict[str, Any]]:
    """Every setting as it holds now, and after the next start. No secret is a setting."""
    return settings.view(lab_of(request))


@router.patch("/settings", response_model=list[SettingOut], dependencies=[PERSON()])
def change_settings(body: Changes, request: Request) -> list[dict[str, Any]]:
    """Names and new values; null is the default again. Written to `labwright.toml`, all of it or nothing."""
    lab, models = lab_of(request), models_of(request)
    settings.change(lab, body, actor_of(request), models)
    lab.local.withhold(models.key_variables)
    return settings.view(lab)
