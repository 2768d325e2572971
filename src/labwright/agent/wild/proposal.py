"""What a search hands to the loop: an idea and the whole configuration that tests it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    hypothesis: str
    change: dict[str, Any]  # beside its parent
    params: dict[str, Any]  # the whole configuration
    parent: int | None
    fault: str = ""  # why it cannot be run; it is recorded all the same
    parameters: dict[str, Any] | None = None  # the space from now on, where a person's words changed it
    taken: int = 0  # so many words of a person were taken into account, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingLeft:
    reason: str
    taken: int = field(default=0)
