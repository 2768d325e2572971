"""A plan: its statuses, the one table of moves between them, and the versions of its text."""

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
    # An edit moves it back to draft: the approval covers only the old text.
    PlanStatus.APPROVED: frozenset({PlanStatus.EXECUTING, PlanStatus.DRAFT, PlanStatus.ARCHIVED}),
    PlanStatus.EXECUTING: frozenset({PlanStatus.COMPLETED, PlanStatus.FAILED}),
    # Executed again, as approved, for the runs that failed.
    PlanStatus.COMPLETED: frozenset({PlanStatus.EXECUTING, PlanStatus.ARCHIVED}),
    # Edited and approved again, or executed again as approved.
    PlanStatus.FAILED: frozenset({PlanStatus.DRAFT, PlanStatus.APPROVED, PlanStatus.EXECUTING, PlanStatus.ARCHIVED}),
    PlanStatus.ARCHIVED: frozenset(),
}
_CANNOT_BE_EDITED = {
    PlanStatus.EXECUTING: "Wait until it has ended.",
    PlanStatus.COMPLETED: "Its results belong to this text. Save the changed text as a new plan.",
    PlanStatus.ARCHIVED: "Save its text as a new plan.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanVersion:
    """One saved version of the text. It never changes."""

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
            raise ValueError("a plan version needs a number and texts")
        return cls(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan without its text, which is in its versions."""

    id: str
    title: str
    goal: str
    created_at: str
    created_by: str
    updated_at: str
    version: int = 1
    valid: bool = False  # whether the text has the exact format
    status: PlanStatus = PlanStatus.DRAFT
    status_reason: str = ""
    session_id: str | None = None
    compiling_by: str = ""  # who requested the compilation in progress; stored, so that a restart continues it
    asks: str = ""  # what it needs from a person: answers or a review
    stopped_by: str = ""  # who cancelled the compilation; set until the worker has stopped
    executed_by: str = ""  # who started the execution
    executions: int = 0  # number of executions; leftovers of a stopped one must not end the next

    def move(self, to: PlanStatus, *, at: str, reason: str = "") -> Plan:
        """The only way to change a status."""
        if to not in MOVES[self.status]:
            allowed = ", ".join(sorted(MOVES[self.status])) or "nothing else"
            raise IllegalMove(
                f"Plan {self.id} is {self.status} and cannot become {to}.", hint=f"It can become {allowed}."
            )
        return replace(self, status=to, status_reason=reason, updated_at=at)

    def check_editable(self) -> None:
        if self.status in _CANNOT_BE_EDITED:
            raise Conflict(
                f"Plan {self.id} is {self.status} and cannot be changed.", hint=_CANNOT_BE_EDITED[self.status]
            )

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
        """Request that the compilation stops. The worker stops it."""
        return replace(self, stopped_by=self.stopped_by or by, updated_at=at)

    def compiled(self, *, ready: bool, why: str, asks: str = "", at: str) -> Plan:
        """End the compilation: approved if the final check found no problem, else a draft."""
        done = replace(self, compiling_by="", stopped_by="", asks=asks, updated_at=at)
        status = PlanStatus.APPROVED if ready else PlanStatus.DRAFT
        return done if done.status is status else done.move(status, at=at, reason=why)

    def executing(self, by: str, *, at: str) -> Plan:
        self.check_free()
        return replace(self.move(PlanStatus.EXECUTING, at=at), executed_by=by, executions=self.executions + 1)

    def waiting(self, why: str, *, at: str) -> Plan:
        """Record what the execution is waiting for (empty: nothing). Do nothing if it has ended."""
        if self.status is not PlanStatus.EXECUTING or self.status_reason == why:
            return self
        return replace(self, status_reason=why, updated_at=at)

    def edited(self, saved: PlanVersion, *, valid: bool) -> Plan:
        """Return the plan with a new version of its text. An approval does not carry over."""
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
        """Link the plan to a conversation. This makes no new version and keeps an approval."""
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
            raise ValueError("a plan needs a version number and texts")
        return plan
