"""What is asked of a model and what it answers: structured facts in, one typed value out."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

Value = TypeVar("Value")


class Tier(StrEnum):
    """How able a model a question needs; which model that is, the deployment decides."""

    CHEAP = "cheap"
    DEFAULT = "default"
    HEAVY = "heavy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[Value]):
    node: str  # who asks: the stable name of a planning node
    wanted: type[Value]
    given: Mapping[str, Any] = field(default_factory=dict)
    feedback: str = ""  # why an earlier answer was not good enough
    tier: Tier = Tier.DEFAULT
    over: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)  # set: nobody waits


class NotWanted(Exception):
    """Nobody waits for the answer any more, so it was given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one call took. Tokens that came from a cache, or went into one, are part of `tokens_in`."""

    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0
    priced: bool = True  # whether the cost is known; what is not known is not free

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
        return replace(self, cost_usd=cost_usd or 0.0, priced=cost_usd is not None)


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
