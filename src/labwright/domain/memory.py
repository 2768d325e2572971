"""Something to be remembered between conversations. What an agent notes is a proposal until a person accepts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    id: str
    text: str
    created_at: str
    created_by: str
    updated_at: str
    accepted: bool  # only then other sessions are told it: else a hostile log could speak to all of them
    session_id: str | None = None  # whose agent noted it

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Memory:
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})
