"""A plan: what is to be tried and why. The statuses, the one table of moves between them, the versions of its text."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from labwright.domain.errors import Conflict, IllegalMove


class PlanStatus(StrEnum):
    DRAFT = "draft"
    APPROVED = "approved"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    ARCHIVED = "archived"


MOVES: dict[PlanStatus, frozenset[PlanStatus]] = {
    PlanStatus.DRAFT: frozenset({PlanStatus.APPROVED, PlanStatus.ARCHIVED}),
    # Back to draft by an edit: what was approved are these words, not the next ones.
    PlanStatus.APPROVED: frozenset({PlanStatus.EXECUTING, PlanStatus.DRAFT, PlanStatus.ARCHIVED}),
    PlanStatus.EXECUTING: frozenset({PlanStatus.COMPLETED, PlanStatus.FAILED}),
    # Executed again for the runs that failed, as it was approved.
    PlanStatus.COMPLETED: frozenset({PlanStatus.EXECUTING, PlanStatus.ARCHIVED}),
    # Mended by an edit, and then approved anew; or tried again as it was approved.
    PlanStatus.FAILED: frozenset({PlanStatus.DRAFT, PlanStatus.APPROVED, PlanStatus.EXECUTING, PlanStatus.ARCHIVED}),
    PlanStatus.ARCHIVED: frozenset(),
}
_CANNOT_BE_EDITED = {
    PlanStatus.EXECUTING: "Wait until it has ended.",
    PlanStatus.COMPLETED: "Its results belong to these words. Save the changed text as a new plan.",
    PlanStatus.ARCHIVED: "Save its text as a new plan.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanVersion:
    """What was saved at one time. Never changed afterwards."""

    version: int
    title: str
    goal: str
    raw_markdown: str
    created_at: str
    created_by: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PlanVersion:
        known = {name: data[name] for name in cls.__dataclass_fields__}
        texts = (value for name, value in known.items() if name != "version")
        if type(known["version"]) is not int or not all(isinstance(text, str) for text in texts):
            raise ValueError("a version of a plan has a number and texts")
        return cls(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All but the text, which is in its versions."""

    id: str
    title: str
    goal: str
    created_at: str
    created_by: str
    updated_at: str
    version: int = 1
    valid: bool = False  # whether the text has the exact form
    status: PlanStatus = PlanStatus.DRAFT
    status_reason: str = ""
    session_id: str | None = None
    compiling_by: str = ""  # for whom it is compiled or checked just now; kept, so that a restart goes on with it
    asks: str = ""  # what it wants of a person: answers, or a review
    stopped_by: str = ""  # who wants that no more; until whoever is at work on it has left off, both stand
    executed_by: str = ""  # who had it executed
    executions: int = 0  # how often; what is left of a stopped one does not end the next

    def move(self, to: PlanStatus, *, at: str, reason: str = "") -> Plan:
        """The only way to change a status."""
        if to not in MOVES[self.status]:
            words = ", ".join(sorted(MOVES[self.status])) or "nothing else"
            raise IllegalMove(
                f"Plan {self.id} is {self.status} and cannot become {to}.", hint=f"It can become {words}."
            )
        return replace(self, status=to, status_reason=reason, updated_at=at)

    def check_editable(self) -> None:
        if self.status in _CANNOT_BE_EDITED:
            raise Conflict(f"Plan {self.id} is {self.status} and stays as it is.", hint=_CANNOT_BE_EDITED[self.status])

    def check_free(self) -> None:
        if self.compiling_by:
            raise Conflict(
                f"Plan {self.id} is being compiled for {self.compiling_by}.",
                hint=f"Wait until planning.status is not compiling, or stop it: labwright plan stop {self.id}",
            )

    def compiling(self, by: str, *, at: str) -> Plan:
        self.check_editable()
        self.check_free()
        return replace(self, compiling_by=by, asks="", updated_at=at)

    def not_compiled(self, by: str, *, at: str) -> Plan:
        """Asked for; done once nobody is at work on it."""
        return replace(self, stopped_by=self.stopped_by or by, updated_at=at)

    def compiled(self, *, ready: bool, why: str, asks: str = "", at: str) -> Plan:
        """Approved where the final check found nothing; and not any more where it did."""
        done = replace(self, compiling_by="", stopped_by="", asks=asks, updated_at=at)
        wanted = PlanStatus.APPROVED if ready else PlanStatus.DRAFT
        return done if done.status is wanted else done.move(wanted, at=at, reason=why)

    def executing(self, by: str, *, at: str) -> Plan:
        self.check_free()
        return replace(self.move(PlanStatus.EXECUTING, at=at), executed_by=by, executions=self.executions + 1)

    def waiting(self, why: str, *, at: str) -> Plan:
        """For what an execution waits just now; nothing if it goes on, or has ended meanwhile."""
        if self.status is not PlanStatus.EXECUTING or self.status_reason == why:
            return self
        return replace(self, status_reason=why, updated_at=at)

    def edited(self, saved: PlanVersion, *, valid: bool) -> Plan:
        """With a new version as its words; an approval does not carry over to them."""
        self.check_editable()
        plan = self
        if self.status is not PlanStatus.DRAFT:
            plan = self.move(PlanStatus.DRAFT, at=saved.created_at, reason=f"edited after it was {self.status}")
        return replace(
            plan,
            version=saved.version,
            title=saved.title,
            goal=saved.goal,
            valid=valid,
            updated_at=saved.created_at,
        )

    def of_session(self, session_id: str, *, at: str) -> Plan:
        """Where it is talked about is not a part of it: no new version, no approval lost."""
        return replace(self, session_id=session_id, updated_at=at)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["status"] = PlanStatus(known["status"])
        plan = cls(**known)
        texts = (plan.id, plan.title, plan.goal, plan.created_at, plan.created_by, plan.updated_at)
        if type(plan.version) is not int or not all(isinstance(text, str) for text in texts):
            raise ValueError("a plan has a version number and texts")
        return plan
