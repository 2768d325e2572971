"""Follow a plan while the server compiles or executes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labwright.cli.formatting import duration, one_line
from labwright.cli.screen import ProgressDisplay, Screen, note
from labwright.client.follow import Frame, watch
from labwright.client.lab import LabClient
from labwright.domain.event import EventType

Json = dict[str, Any]
_TYPES = ",".join((EventType.PLAN_NODE, EventType.PLAN_STEP, EventType.PLAN_UPDATED, EventType.PLAN_STATUS))
_STEP_EVENTS = (EventType.PLAN_NODE, EventType.PLAN_STEP)
_NODES = {
    "IngestReport": "read the request",
    "DraftReportDigest": "summarize the request",
    "DraftImplementationPlan": "write the plan document",
    "CompileWorkflowIR": "steps and grid",
    "CompileTaskIR": "tasks of each step",
    "GenerateWorkflowSkeleton": "write the workflow",
    "GenerateTaskTests": "write its tests",
    "GenerateTaskImplementations": "write its code",
    "ValidateWorkspace": "run all checks and rehearse",
    "HumanReview": "review by a person",
    "FinalHandoffCheck": "run all checks again",
}
REDOABLE_NODES = tuple(name for name in _NODES if name not in ("HumanReview", "FinalHandoffCheck"))
_LABELS = {"finished": ("done", "green"), "failed": ("failed", "red"), "suspended": ("waiting", "yellow")}
_COLUMN = 28


def follow_compilation(screen: Screen, client: LabClient, plan: Json, before: Json | None = None) -> Json:
    """Show each node until nothing works on the plan, and return the plan. Nodes that `before` has are not shown."""
    shown = {_key(node) for node in before["planning"]["progress"]} if before and before["planning"] else set()
    with screen.progress() as progress:
        for current, event in _changes(client, plan["id"]):
            if event and event["status"] == "waiting":  # printed even if progress is not shown
                note(one_line(event["message"]))
            for node in current["planning"]["progress"]:
                if node["status"] in _LABELS and _key(node) not in shown:
                    shown.add(_key(node))
                    seconds = None if node["status"] == "suspended" else node["seconds"]
                    _show(progress, node["node"], _NODES.get(node["node"], ""), node["status"], seconds)
            progress.now(current["planning"]["node"] or "starting")
            if not current["compiling_by"]:
                return current
    raise AssertionError("the event stream does not end")


def _key(node: Json) -> tuple[Any, ...]:
    return node["node"], node["status"], node["seconds"]


def follow_execution(screen: Screen, client: LabClient, plan: Json) -> Json:
    """Show each step until the plan is not executing any more, and return the plan."""
    with screen.progress() as progress:
        progress.now("starting")
        for current, event in _changes(client, plan["id"]):
            if event and "step" in event:
                _show_step(progress, event)
            if current["status"] != "executing":
                return current
    raise AssertionError("the event stream does not end")


def _show_step(progress: ProgressDisplay, step: Json) -> None:
    started = step.get("sweep_id") or step.get("run_id") or ""
    if step["status"] == "paused":  # printed even if progress is not shown; otherwise it would look like a hang
        note(f"{step['step']}: {started} is paused: {one_line(step['message'])} Answer it: labwright alerts")
    if step["status"] in _LABELS:
        _show(progress, step["step"], started, step["status"], step.get("seconds"))
    else:
        progress.now(f"{step['step']} {one_line(str(step['status']))} {started}".strip())


def _show(progress: ProgressDisplay, name: str, about: str, status: str, seconds: float | None) -> None:
    label, style = _LABELS[status]
    taken = "" if seconds is None else duration(seconds)
    progress.line(f"{name:<{_COLUMN}}{about:<{_COLUMN}}", f"{label:<8}", style, taken)


def _changes(client: LabClient, plan_id: str) -> Iterator[tuple[Json, Json | None]]:
    """Yield the plan, and the event of a node or step if there was one."""

    def concerns(frame: Frame) -> bool:
        return bool(frame.data["data"]["plan_id"] == plan_id)

    query: dict[str, object] = {"types": _TYPES}
    for plan, frame in watch(client, lambda: client.plan(plan_id), query, note, concerns=concerns):
        yield plan, frame.data["data"] if frame.event in _STEP_EVENTS else None
