"""What an assistant suggests so that the work goes better the next time. A person accepts it, or does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from labwright.domain.errors import Conflict


class SuggestionStatus(StrEnum):
    PENDING = "pending"
    ACCEPTED = "accepted"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    id: str
    text: str  # what is suggested, as it was said
    template: str = ""  # a file that goes with it, such as a sweep or a script
    status: SuggestionStatus = SuggestionStatus.PENDING
    accepted_into: str = ""  # the skill, or the file of the project
    answered_by: str | None = None

    def answered(self, status: SuggestionStatus, by: str, into: str = "") -> Suggestion:
        if self.status is not SuggestionStatus.PENDING:
            raise Conflict(f"Suggestion {self.id} is {self.status} already.", hint="There is nothing left to do.")
        return replace(self, status=status, answered_by=by, accepted_into=into)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Suggestion:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**{**known, "status": SuggestionStatus(known["status"])})
