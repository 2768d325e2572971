"""How a plan looks on the screen: one line in a list, or the document itself."""

from __future__ import annotations

from typing import Any

from labwright.cli.formatting import ago, clock_time, counted, one_line
from labwright.cli.markdown import show_document
from labwright.cli.plans.view import lights, next_step, show_questions
from labwright.cli.screen import Cell, Column, Screen
from labwright.domain.plan import PlanStatus

Json = dict[str, Any]
_STYLES = {
    PlanStatus.DRAFT: "",
    PlanStatus.APPROVED: "cyan",
    PlanStatus.EXECUTING: "blue",
    PlanStatus.COMPLETED: "green",
    PlanStatus.FAILED: "red",
    PlanStatus.ARCHIVED: "grey",
}


def status_cell(status: str) -> Cell:
    return status, _STYLES[PlanStatus(status)]


def plan_table(screen: Screen, plans: list[Json]) -> None:
    columns = [
        Column(title="plan"),
        Column(title="title", shrinks=True),
        Column(title="status"),
        Column(title="version", right=True),
        Column(title="format"),
        Column(title="changed", right=True),
        Column(title="goal", shrinks=True),
    ]
    screen.table(columns, [_row(plan) for plan in plans])


def _row(plan: Json) -> list[Cell]:
    form = ("exact", "green") if plan["valid"] else ("not exact", "amber")
    changed = (ago(plan["updated_at"]), "dim")
    return [plan["id"], plan["title"], status_cell(plan["status"]), str(plan["version"]), form, changed, plan["goal"]]


def version_table(screen: Screen, versions: list[Json]) -> None:
    columns = [
        Column(title="version", right=True),
        Column(title="saved"),
        Column(title="by"),
        Column(title="lines", right=True),
        Column(title="title", shrinks=True),
    ]
    rows = [
        [
            str(version["version"]),
            clock_time(version["created_at"]),
            version["created_by"],
            str(len(version["raw_markdown"].split("\n"))),
            version["title"],
        ]
        for version in versions
    ]
    screen.table(columns, rows)


def plan_line(screen: Screen, plan: Json) -> None:
    """What a verb did to a plan."""
    version = (f"  (version {plan['version']})", "dim")
    screen.say((plan["id"], "bold"), "  ", status_cell(plan["status"]), f"  {one_line(plan['title'])}", version)


def plan_in_full(screen: Screen, plan: Json) -> None:
    plan_line(screen, plan)
    why = plan["status_reason"]
    screen.facts(
        [
            ("goal", one_line(plan["goal"])),
            ("why", one_line(why)),
            ("saved", f"{clock_time(plan['created_at'])} by {plan['created_by']}"),
            ("session", plan["session_id"] or ""),
        ]
    )
    show_faults(screen, plan["format"])
    screen.say("")
    show_document(plan["raw_markdown"])
    _planning(screen, plan)
    screen.next(next_step(plan))


def _planning(screen: Screen, plan: Json) -> None:
    planning = plan["planning"]
    if planning is None:
        return
    screen.heading("Planning")
    stopped = planning["node"] if planning["status"] != "ready_for_run" else ""
    where: Cell = f"{planning['status'].replace('_', ' ')}{f' at {stopped}' if stopped else ''}"
    screen.facts([("status", where), *lights(planning), ("why", one_line(planning["error"]))])
    if planning["status"] == "needs_input":
        show_questions(screen, planning["questions"])


def show_faults(screen: Screen, form: Json) -> None:
    if form["valid"]:
        return
    faults = form["errors"]
    screen.say((f"{counted(len(faults), 'fault')} of form:", "amber"))
    for fault in faults:
        screen.say(
            (f"  line {fault['line']}: ", "bold"), one_line(fault["message"]), (f"  {one_line(fault['hint'])}", "dim")
        )
