"""/models: which language models answer, whether their keys are there, what they took. Keys are never shown."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from labwright.llm import Tier
from labwright.llm.models import Models
from labwright.server.auth import READERS
from labwright.server.chat_models import SpentOut

router = APIRouter(prefix="/models", tags=["models"])


class TierOut(BaseModel):
    tier: Tier
    model: str
    address: str
    key: str  # where it was found, or what is wrong with it
    usable: bool
    hint: str  # how to mend it
    priced: bool
    spent: SpentOut


class SessionLimits(BaseModel):
    tokens: int
    usd: float


class ModelsOut(BaseModel):
    configured: bool
    offline: str
    tiers: list[TierOut]
    spent: SpentOut
    session_limits: SessionLimits


def models_of(request: Request) -> Models:
    models: Models = request.app.state.models
    return models


@router.get("", response_model=ModelsOut, dependencies=[READERS()])
def get_models(request: Request) -> dict[str, Any]:
    """Which model answers for each tier, and what was spent so far."""
    return models_of(request).view()
