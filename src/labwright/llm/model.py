"""The interface for structured questions: facts in, one typed value out."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

Value = TypeVar("Value")


class Tier(StrEnum):
    """How capable a model a request needs. The settings decide which model serves each tier."""

    CHEAP = "cheap"
    DEFAULT = "default"
    HEAVY = "heavy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[Value]):
    node: str  # the stable name of the planning node that sends the request
    value_type: type[Value]
    given: Mapping[str, Any] = field(default_factory=dict)
    feedback: str = ""  # why an earlier answer was rejected
    tier: Tier = Tier.DEFAULT
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)


class RequestCancelled(Exception):
    """The caller cancelled the request while it was being answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and cost of one call. `tokens_in` includes tokens read from or written to a cache."""

    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0
    priced: bool = True  # False: the cost is unknown, which does not mean free

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            cost_usd=self.cost_usd + other.cost_usd,
            priced=self.priced and other.priced,
        )

    def at(self, cost_usd: float | None) -> Usage:
        """Return this usage with a cost, or marked as unpriced if the cost is None."""
        return replace(self, cost_usd=cost_usd or 0.0, priced=cost_usd is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer(Generic[Value]):
    value: Value
    model: str
    usage: Usage = Usage()


class Model(Protocol):
    @property
    def name(self) -> str:
        """The name shown to people. A rule-based stand-in says so in its name."""
        ...

    def answer(self, request: Request[Value]) -> ModelAnswer[Value]: ...
