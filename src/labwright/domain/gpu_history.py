"""How busy and how full cards were over time, and how that is thinned to what a picture can show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labwright.domain.gpu import Gpu


@dataclass(frozen=True, slots=True)
class Reading:
    """One card at one moment."""

    utilization: int
    memory_used_mb: int
    run_id: str  # who held it; empty where nobody did


@dataclass(frozen=True, slots=True)
class Moment:
    """All cards at one moment."""

    at: float  # seconds since the epoch
    cards: Mapping[str, Reading]  # by UUID

    @classmethod
    def of(cls, gpus: Iterable[Gpu], at: float) -> Moment:
        return cls(round(at, 3), {gpu.uuid: _reading(gpu) for gpu in gpus})

    def to_dict(self) -> dict[str, Any]:
        cards = {uuid: [one.utilization, one.memory_used_mb, one.run_id] for uuid, one in self.cards.items()}
        return {"at": self.at, "cards": cards}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Moment:
        cards = {
            str(uuid): Reading(int(busy), int(memory), str(run)) for uuid, (busy, memory, run) in data["cards"].items()
        }
        return cls(float(data["at"]), cards)


@dataclass(slots=True)
class Trace:
    """One card over time, as lists of the same length: each entry stands for what happened in one span."""

    uuid: str
    times: list[float] = field(default_factory=list)  # of the last reading in the span
    utilization: list[float] = field(default_factory=list)  # mean
    memory_used_mb: list[int] = field(default_factory=list)  # greatest
    run_ids: list[str] = field(default_factory=list)  # of the last reading


def _reading(gpu: Gpu) -> Reading:
    return Reading(gpu.utilization, gpu.memory_used_mb, gpu.lease.run_id if gpu.lease else "")


def traces(moments: Sequence[Moment], since: float, until: float, points: int) -> list[Trace]:
    """At most `points` entries a card. A span in which nobody looked has none."""
    spans: dict[tuple[str, int], list[tuple[float, Reading]]] = {}  # by card and number of the span
    width = (until - since) / points
    for moment in moments:
        if since < moment.at <= until:
            span = min(points - 1, int((moment.at - since) / width))
            for uuid, reading in moment.cards.items():
                spans.setdefault((uuid, span), []).append((moment.at, reading))
    found: dict[str, Trace] = {}
    for (uuid, _), seen in sorted(spans.items()):
        _add(found.setdefault(uuid, Trace(uuid)), seen)
    return list(found.values())


def _add(trace: Trace, seen: list[tuple[float, Reading]]) -> None:
    at, last = seen[-1]
    trace.times.append(at)
    trace.utilization.append(round(sum(reading.utilization for _, reading in seen) / len(seen), 1))
    trace.memory_used_mb.append(max(reading.memory_used_mb for _, reading in seen))
    trace.run_ids.append(last.run_id)
