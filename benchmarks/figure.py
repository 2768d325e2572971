"""A figure: what was measured, how often, what it should be, and what others reach."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A bound on a figure: at least, or at most."""

    value: float
    at_least: bool = False

    def is_met_by(self, ours: float) -> bool:
        return ours >= self.value if self.at_least else ours <= self.value

    def words(self, unit: str) -> str:
        return f"{'≥' if self.at_least else '≤'} {with_unit(self.value, unit)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What another system reaches at the same work, or why that is not known."""

    name: str
    value: float | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    unit: str
    rounds: tuple[float, ...]
    ours: float
    how: str  # which of the rounds counts, and what one round is
    target: Target | None = None
    peers: tuple[Peer, ...] = ()
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    @property
    def verdict(self) -> str:
        if self.target is None:
            return "no target"
        return "met" if self.target.is_met_by(self.ours) else "MISSED"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": self.ours,
            "rounds": self.rounds,
            "how": self.how,
            "target": self.target and self.target.words(self.unit),
            "verdict": self.verdict,
            "peers": {peer.name: peer.missing or peer.value for peer in self.peers},
            "load_average": self.load,
        }


def at_least(value: float) -> Target:
    return Target(value=value, at_least=True)


def at_most(value: float) -> Target:
    return Target(value=value)


def best_rate(name: str, rounds: Sequence[float], how: str, target: Target | None, *peers: Peer) -> Figure:
    """The fastest round: what disturbs a rate only ever lowers it."""
    return Figure(
        name=name,
        unit="/s",
        rounds=tuple(rounds),
        ours=max(rounds),
        how=f"best of {len(rounds)} rounds (median {statistics.median(rounds):.0f}/s); {how}",
        target=target,
        peers=peers,
    )


def median_of(name: str, unit: str, rounds: Sequence[float], how: str, target: Target | None, *peers: Peer) -> Figure:
    return Figure(
        name=name,
        unit=unit,
        rounds=tuple(rounds),
        ours=statistics.median(rounds),
        how=f"median of {len(rounds)} (best {with_unit(min(rounds), unit)}); {how}" if len(rounds) > 1 else how,
        target=target,
        peers=peers,
    )


def p95(samples: Sequence[float]) -> float:
    return statistics.quantiles(samples, n=20)[-1]


def p95_rounds(sample: Callable[[], float], rounds: int, size: int) -> list[float]:
    """The 95th percentile of each round; a few unmeasured calls first, to open connections and files."""
    for _ in range(10):
        sample()
    return [p95([sample() for _ in range(size)]) for _ in range(rounds)]


def with_unit(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    space = "" if unit in ("/s", "×") else " "
    return f"{value:,.{digits}f}{space}{unit}"
