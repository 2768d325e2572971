"""What somebody asks for when a loop is to be started. Apart from who reads it, so that it is light to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWild:
    """What somebody asks for. Whatever is given here beside the goal wins over its words."""

    goal: str
    id: str | None = None  # of who may have to ask twice for the same loop
    session_id: str | None = None
    budget: dict[str, Any] = field(default_factory=dict)
    protect: tuple[str, ...] = ()
    script: str | None = None
    metric: dict[str, Any] | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    gpus: int | None = None
    parallel: int | None = None
