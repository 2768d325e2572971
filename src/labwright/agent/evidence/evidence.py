"""One piece of evidence: its source, and the numbers that the source showed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a source shows at one time."""

    values: dict[str, float | int] = field(default_factory=dict)
    texts: tuple[str, ...] = ()  # text that may be quoted with its numbers: log lines, dates
    about: tuple[str, ...] = ()  # ids and names of what it is about
    key: str = ""  # the metric, if it is about one
    order: tuple[str, ...] = ()  # ids, best first, if it ranks
    goal: str = ""  # min or max: the direction of `order`
    settled: bool = True  # True if the source has ended and cannot change


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    id: str  # E1, E2, … in its session
    kind: str
    source: dict[str, Any]  # with the kind, everything needed to read it again
    seen: Reading

    def to_dict(self) -> dict[str, Any]:
        seen = {name: getattr(self.seen, name) for name in Reading.__dataclass_fields__}
        return {"id": self.id, "kind": self.kind, "source": self.source, **seen}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Evidence:
        facts = {name: data[name] for name in Reading.__dataclass_fields__ if name in data}
        for name in ("texts", "about", "order"):
            facts[name] = tuple(facts.get(name, ()))
        return cls(id=data["id"], kind=data["kind"], source=data["source"], seen=Reading(**facts))

    @property
    def compares(self) -> bool:
        return bool(self.seen.order)
