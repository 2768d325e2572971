"""/models: the language models in use, the state of their keys, and spending. Keys are never shown."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from labwright.domain.errors import NotFound
from labwright.llm import Tier
from labwright.llm.endpoints import Endpoint, delete_key, save_key
from labwright.llm.models import Models
from labwright.server.auth import PERSON, READERS, actor_of
from labwright.server.models.chat import SpentOut
from labwright.server.models.fields import In
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.services import settings

router = APIRouter(prefix="/models", route_class=StrictJsonRoute, tags=["models"])


class TierOut(BaseModel):
    tier: Tier
    model: str
    address: str
    key: str  # where it was found, or why it is unusable
    usable: bool
    hint: str  # how to fix it
    priced: bool
    spent: SpentOut


class SessionLimits(BaseModel):
    tokens: int
    usd: float


class ProviderOut(BaseModel):
    name: str
    address: str
    needs_key: bool
    key: str  # where it was found, or why it is unusable
    usable: bool
    hint: str


class KeyIn(In):
    key: Annotated[str, Field(min_length=1, max_length=1000)] = Field(description="stored, and never shown again")


class ModelsOut(BaseModel):
    configured: bool
    offline: str
    tiers: list[TierOut]
    spent: SpentOut
    session_limits: SessionLimits
    providers: list[ProviderOut]


def models_of(request: Request) -> Models:
    models: Models = request.app.state.models
    return models


@router.get("", response_model=ModelsOut, dependencies=[READERS()])
def get_models(request: Request) -> dict[str, Any]:
    """Return the model of each tier and the spending so far."""
    return models_of(request).view()


@router.put("/{provider}/key", status_code=204, dependencies=[PERSON()])
def keep_model_key(provider: str, body: KeyIn, request: Request) -> Response:
    """Store a key in a file that only you can read. A variable in the server's environment overrides it."""
    save_key(_endpoint(request, provider), body.key)
    settings.emit_changed(lab_of(request), [f"key of {provider}"], actor_of(request))
    return Response(status_code=204)


@router.delete("/{provider}/key", status_code=204, dependencies=[PERSON()])
def drop_model_key(provider: str, request: Request) -> Response:
    """Delete the stored key. A variable in the server's environment stays."""
    delete_key(_endpoint(request, provider))
    settings.emit_changed(lab_of(request), [f"key of {provider}"], actor_of(request))
    return Response(status_code=204)


def _endpoint(request: Request, provider: str) -> Endpoint:
    found = models_of(request).endpoints()
    if provider not in found:
        raise NotFound(f"There is no provider {provider[:40]!r}.", hint=f"Known: {', '.join(sorted(found))}.")
    return found[provider]
