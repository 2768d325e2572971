"""What is asked of a model and what it answers: structured facts in, one typed value out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

Value = TypeVar("Value")


class Tier(StrEnum):
    """How able a model a node needs; which model that is, the deployment decides."""

    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[Value]):
    node: str  # who asks: the stable name of a planning node
    wanted: type[Value]
    given: Mapping[str, Any] = field(default_factory=dict)
    feedback: str = ""  # why an earlier answer was not good enough
    tier: Tier = Tier.LARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[Value]):
    value: Value
    model: str
    usage: Usage = Usage()


class Model(Protocol):
    @property
    def name(self) -> str:
        """As people are shown it; one that is only rules says so here."""
        ...

    def answer(self, request: Request[Value]) -> Answer[Value]: ...
