"""How a route reaches what the server holds."""

from __future__ import annotations

from fastapi import Request
from pydantic import BaseModel

from labwright.compute.lab import Lab
from labwright.server.stream import Hub
from labwright.store.idempotency import IdempotencyKey


def lab_of(request: Request) -> Lab:
    lab: Lab = request.app.state.lab
    return lab


def hub_of(request: Request) -> Hub:
    hub: Hub = request.app.state.hub
    return hub


def idempotency_key(key: str | None, request: Request, body: BaseModel) -> IdempotencyKey | None:
    if key is None:
        return None
    return IdempotencyKey.of(key, f"{request.method} {request.url.path}", body.model_dump_json().encode())
