"""Errors, health, events and saved views over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from labwright.server.models.fields import In, Text


class ErrorDetail(BaseModel):
    code: str
    message: str
    hint: str
    field: list[str | int] | None = Field(None, description="path of the invalid field, if known")


class ErrorOut(BaseModel):
    error: ErrorDetail


class HealthOut(BaseModel):
    status: str
    version: str


class EventOut(BaseModel):
    seq: int
    epoch: str
    time: str
    type: str
    actor: str
    run_id: str | None
    sweep_id: str | None
    data: dict[str, Any]


class ViewIn(In):
    name: Text = Field(min_length=1, max_length=60)
    query: Text = Field(max_length=4000, description="the query string of the page")


class ViewOut(BaseModel):
    name: str
    query: str
