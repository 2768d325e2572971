"""Convert a stored event into a notification. The channels decide whether they send it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from labwright.domain.alert import Severity
from labwright.domain.clock import epoch_seconds
from labwright.domain.event import Event, EventType
from labwright.domain.run import Run, RunStatus

_SAMPLED = "system"  # the source of the monitor's samples
_MOST_RESULTS = 5

TYPES = (EventType.ALERT_RAISED, EventType.RUN_STATUS, EventType.APPROVAL_ASKED)
IMPORTED = "imported"  # the tag of imported runs, which ended long ago


class NotificationKind(StrEnum):
    ALERT = "alert"
    RUN_FAILED = "run_failed"
    RUN_FINISHED = "run_finished"
    APPROVAL = "approval"
    TEST = "test"


_ENDS = {
    RunStatus.FAILED: (NotificationKind.RUN_FAILED, Severity.CRITICAL),
    RunStatus.LOST: (NotificationKind.RUN_FAILED, Severity.CRITICAL),
    RunStatus.FINISHED: (NotificationKind.RUN_FINISHED, Severity.INFO),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    kind: NotificationKind
    severity: Severity
    title: str
    text: str
    time: str
    project: str
    run: dict[str, Any] | None = None
    alert: dict[str, Any] | None = None
    approval: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None  # how to answer over HTTP; made when it is sent, and never stored
    how_to_answer: str = ""
    details: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Notification:
        return cls(**{**data, "kind": NotificationKind(data["kind"]), "severity": Severity(data["severity"])})


def is_news(event: Event) -> bool:
    """Return whether an event may lead to a message."""
    return event.type in TYPES and (event.type is not EventType.RUN_STATUS or event.data["to"] in _ENDS)


def message_of(event: Event, run: Run | None, project: str) -> Notification | None:
    """Return None if there is nothing to report: other changes of a run, and imported runs."""
    if run is not None and IMPORTED in run.tags:
        return None
    if event.type is EventType.ALERT_RAISED:
        return _alert_notification(event, run, project)
    if event.type is EventType.APPROVAL_ASKED:
        return _approval_notification(event, project)
    if event.type is EventType.RUN_STATUS and event.data["to"] in _ENDS:
        return _end_notification(event, run, project)
    return None


def _alert_notification(event: Event, run: Run | None, project: str) -> Notification:
    data = event.data
    choices = "|".join(data["choices"])
    return Notification(
        kind=NotificationKind.ALERT,
        severity=Severity(data["severity"]),
        title=f"{data['severity'].capitalize()}: {_name(event, run)}",
        text=data["message"],
        time=event.time,
        project=project,
        run=_run_facts(event, run) if event.run_id else None,
        alert={"id": data["alert_id"], "message": data["message"], "choices": data["choices"]},
        how_to_answer=f"labwright alerts answer {data['alert_id']} {choices}" if choices else "",
    )


def _approval_notification(event: Event, project: str) -> Notification:
    return Notification(
        kind=NotificationKind.APPROVAL,
        severity=Severity.WARNING,
        title="An agent requests your approval",
        text=event.data["question"],
        time=event.time,
        project=project,
        approval={"id": event.data["approval_id"], "question": event.data["question"]},
        how_to_answer=f"labwright approvals answer {event.data['approval_id']} approve|deny",
    )


def _end_notification(event: Event, run: Run | None, project: str) -> Notification:
    kind, severity = _ENDS[RunStatus(event.data["to"])]
    return Notification(
        kind=kind,
        severity=severity,
        title=f"Run {event.data['to']}: {_name(event, run)}",
        text=_end_text(event, run),
        time=event.time,
        project=project,
        run=_run_facts(event, run),
        details=_results(run) if run and kind is NotificationKind.RUN_FINISHED else [],
    )


def _end_text(event: Event, run: Run | None) -> str:
    reason = (run.error if run else None) or event.data.get("reason") or ""
    code = event.data.get("exit_code")
    exit_text = f"exit code {code}" if code else ""
    parts = [exit_text, reason.replace("_", " ") if reason.isidentifier() else reason.rstrip(".")]
    if parts[1].lower() == exit_text:
        parts = [exit_text]
    if run and run.started_at and run.ended_at:
        parts.append(f"after {_duration(epoch_seconds(run.ended_at) - epoch_seconds(run.started_at))}")
    return ", ".join(filter(None, parts))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02d}m"
    return f"{minutes}m {rest:02d}s" if minutes else f"{seconds:.1f}s"


def _results(run: Run) -> list[str]:
    """Return the last values that the run itself logged, without system metrics."""
    own = [(key, metric.get("last")) for key, metric in run.summary.items() if metric.get("source") != _SAMPLED]
    return [
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in own[:_MOST_RESULTS]
    ]


def _name(event: Event, run: Run | None) -> str:
    return run.name if run else event.run_id or event.sweep_id or event.data.get("wild_id") or "a run"


def _run_facts(event: Event, run: Run | None) -> dict[str, Any]:
    if run is None:
        return {"id": event.run_id}
    names = ("id", "name", "status", "exit_code", "sweep_id", "started_at", "ended_at")
    return {name: getattr(run, name) for name in names}
