"""One piece of evidence: what was looked at, and the numbers it showed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a source shows now."""

    values: dict[str, float | int] = field(default_factory=dict)
    texts: tuple[str, ...] = ()  # words that may be quoted, with the numbers in them: log lines, dates
    about: tuple[str, ...] = ()  # ids and names of what it is about
    key: str = ""  # the metric, where it is one
    order: tuple[str, ...] = ()  # ids, best first, where it ranks
    goal: str = ""  # min or max: which way `order` goes
    settled: bool = True  # nothing that has ended changes any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    id: str  # E1, E2, … in its session
    kind: str
    source: dict[str, Any]  # with the kind, all that is needed to look again
    seen: Seen

    def to_dict(self) -> dict[str, Any]:
        seen = {name: getattr(self.seen, name) for name in Seen.__dataclass_fields__}
        return {"id": self.id, "kind": self.kind, "source": self.source, **seen}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Evidence:
        facts = {name: data[name] for name in Seen.__dataclass_fields__ if name in data}
        for name in ("texts", "about", "order"):
            facts[name] = tuple(facts.get(name, ()))
        return cls(id=data["id"], kind=data["kind"], source=data["source"], seen=Seen(**facts))

    @property
    def compares(self) -> bool:
        return bool(self.seen.order)
