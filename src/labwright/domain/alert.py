"""An alert: a message for a person or an agent, with choices for an answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from labwright.domain.errors import Conflict, Invalid


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class AlertStatus(StrEnum):
    PENDING = "pending"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    id: str
    run_id: str | None  # None: the alert is about a whole sweep or a wild loop
    message: str
    severity: Severity
    created_at: str
    sweep_id: str | None = None
    wild_id: str | None = None
    rule: str = ""
    choices: tuple[str, ...] = ()
    status: AlertStatus = AlertStatus.PENDING
    answer: str | None = None
    answered_by: str | None = None
    answered_at: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "choices": list(self.choices)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Alert:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["severity"] = Severity(known["severity"])
        known["status"] = AlertStatus(known.get("status", AlertStatus.PENDING))
        known["choices"] = tuple(known.get("choices", ()))
        return cls(**known)

    def answered(self, choice: str, by: str, at: str) -> Alert:
        return replace(self, status=AlertStatus.RESOLVED, answer=choice, answered_by=by, answered_at=at)

    def after_end(self) -> Alert:
        """Adapt the choices to a run that has ended: offer rerun instead of stop."""
        if "stop" not in self.choices:
            return self
        left = tuple(choice for choice in self.choices if choice != "stop")
        return replace(self, choices=left if set(left) - {"ignore"} else (*left, "rerun"))

    def check_answer(self, choice: str) -> None:
        if self.status is AlertStatus.RESOLVED:
            raise Conflict(
                f"Alert {self.id} was already answered with {self.answer!r}.",
                hint="An answer is final. The run's events show its effect.",
            )
        if self.choices and choice not in self.choices:
            raise Invalid(f"{choice!r} is not a choice of this alert.", hint=f"Choose: {', '.join(self.choices)}.")
