"""How a plan is shown: a row in a table, one line, in full, or after its compilation."""

from __future__ import annotations

from typing import Any

from labwright.cli.formatting import ago, clock_time, duration, one_line, plural, shorten
from labwright.cli.markdown import show_document
from labwright.cli.screen import Cell, Column, Screen
from labwright.client.lab import LabClient
from labwright.domain.plan import PlanStatus
from labwright.domain.plan_document.document import LOOK_IN_REVIEW

Json = dict[str, Any]
_STYLES = {
    PlanStatus.DRAFT: "",
    PlanStatus.APPROVED: "cyan",
    PlanStatus.EXECUTING: "blue",
    PlanStatus.COMPLETED: "green",
    PlanStatus.FAILED: "red",
    PlanStatus.ARCHIVED: "bright_black",
}
_SHOWN_FINDINGS = 10
_LONGEST_ROW = 100


def _status_cell(plan: Json) -> Cell:
    return plan["status"], _STYLES[PlanStatus(plan["status"])]


COLUMNS = [
    Column("plan", "id"),
    Column("title", "title", shrinks=True),
    Column("status", _status_cell),
    Column("version", lambda plan: str(plan["version"]), right=True),
    Column("format", lambda plan: ("valid", "green") if plan["valid"] else ("invalid", "yellow")),
    Column("changed", lambda plan: ago(plan["updated_at"]), style="dim", right=True),
    Column("goal", "goal", shrinks=True),
]
VERSION_COLUMNS = [
    Column("version", lambda version: str(version["version"]), right=True),
    Column("saved", lambda version: clock_time(version["created_at"])),
    Column("by", "created_by"),
    Column("lines", lambda version: str(len(version["raw_markdown"].split("\n"))), right=True),
    Column("title", "title", shrinks=True),
]


def plan_line(screen: Screen, plan: Json) -> None:
    version = (f"  (version {plan['version']})", "dim")
    screen.item(plan["id"], _status_cell(plan), f"  {one_line(plan['title'])}", version)


def plan_in_full(screen: Screen, plan: Json) -> None:
    plan_line(screen, plan)
    screen.facts(
        [
            ("goal", one_line(plan["goal"])),
            ("why", one_line(plan["status_reason"])),
            ("saved", f"{clock_time(plan['created_at'])} by {plan['created_by']}"),
            ("session", plan["session_id"] or ""),
        ]
    )
    show_faults(screen, plan["format"])
    screen.print("")
    show_document(plan["raw_markdown"])
    if planning := plan["planning"]:
        screen.heading("Planning")
        node = planning["node"] if planning["status"] != "ready_for_run" else ""
        status: Cell = f"{planning['status'].replace('_', ' ')}{f' at {node}' if node else ''}"
        screen.facts([("status", status), *readiness(planning), ("why", one_line(planning["error"]))])
        if planning["status"] == "needs_input":
            show_questions(screen, planning["questions"])
    screen.suggest(next_step(plan))


def show_faults(screen: Screen, form: Json) -> None:
    """Show what is wrong with the format of the document."""
    if form["valid"]:
        return
    screen.print((f"{plural(len(form['errors']), 'format error')}:", "yellow"))
    for fault in form["errors"]:
        hint = (f"  {one_line(fault['hint'])}", "dim")
        screen.print((f"  line {fault['line']}: ", "bold"), one_line(fault["message"]), hint)


def show_compiled(screen: Screen, client: LabClient, plan: Json) -> None:
    """Show the result of a compilation, and the next step."""
    planning = plan["planning"]
    if planning["status"] == "failed":
        show_failure(screen, planning)
    elif planning["status"] == "needs_input":
        show_questions(screen, planning["questions"])
    else:
        workspace = client.plan_workspace(plan["id"])
        screen.print((one_line(plan["title"]), "bold"))
        screen.facts(
            [
                ("runs", one_line(plan["sections"]["estimated_effort"]["runs"])),
                *_interpretation(plan["sections"]),
                *rehearsal_facts(workspace["rehearsal"])[:3],
                *readiness(planning),
                ("digest", workspace["digest"][:8]),
            ]
        )
        show_findings(screen, workspace["validation"])
    screen.print(f"✅ Plan saved — ID: @{plan['id']}")
    if planning["status"] == "needs_input":
        screen.print(next_step(plan))  # also in a pipe, because the user must act
    else:
        screen.suggest(next_step(plan))


def _interpretation(sections: Json) -> list[tuple[str, Cell]]:
    """Return how the goal was understood, and what is uncertain."""
    varied = [f"{row['name']} {', '.join(row['values'])}" for row in sections["parameters"]]
    doubts = [risk["risk"] for risk in sections["risks"] if risk["mitigation"] == LOOK_IN_REVIEW]
    return [
        ("varies", "\n".join(shorten(one_line(row), _LONGEST_ROW) for row in varied)),
        ("check", ("\n".join(shorten(one_line(doubt), _LONGEST_ROW) for doubt in doubts), "yellow")),
    ]


def show_failure(screen: Screen, planning: Json) -> None:
    screen.print(("failed", "red"), f" at {planning['node'] or 'the start'}: {one_line(planning['error'])}")


def show_questions(screen: Screen, questions: list[Json]) -> None:
    screen.print((f"Planning has {plural(len(questions), 'question')}:", "yellow"))
    for index, question in enumerate(questions, 1):
        screen.print(f"  {index}. {one_line(question['text'])}")
        if question["suggestions"]:
            screen.print((f"     for example: {' · '.join(map(one_line, question['suggestions']))}", "dim"))


def readiness(planning: Json) -> list[tuple[str, Cell]]:
    """Return whether the plan is validated, approved, and ready to run."""

    def yes_or_no(fact: bool) -> Cell:
        return ("yes", "green") if fact else ("no", "yellow")

    approved = yes_or_no(False)
    if approval := planning["approval"]:
        how = "automatically, requested by" if approval["automatic"] else "by"
        why = f" ({one_line(approval['reason'])})" if approval["reason"] else ""
        approved = (f"{how} {approval['by']}{why} · digest {approval['digest'][:8]}", "green")
    return [
        ("validated", yes_or_no(planning["validated"])),
        ("approved", approved),
        ("ready to run", yes_or_no(planning["ready_for_run"])),
    ]


def rehearsal_facts(rehearsal: Json | None) -> list[tuple[str, Cell]]:
    """Return the rehearsal's outcome, and what it predicts for the plan."""
    if rehearsal is None:
        return [("rehearsal", ("none", "yellow"))]
    outcome = str(rehearsal["outcome"])
    why = f": {one_line(rehearsal['reason'])}" if rehearsal["reason"] else ""
    style = {"passed": "yellow" if why else "green", "failed": "red"}.get(outcome, "yellow")
    predicted = rehearsal["prediction"] or {}
    total = _range(predicted.get("total_seconds"))
    if total:
        total += f", {plural(predicted['runs'], 'run')}, {predicted['at_a_time']} in parallel"
    return [
        ("rehearsal", (f"{outcome.replace('_', ' ')}{why}", style)),
        ("time per run", _range(predicted.get("run_seconds"))),
        ("total time", total),
        ("memory", f"{predicted['memory_mb']:.0f} MB per run" if predicted.get("memory_mb") else ""),
        ("source", one_line(predicted.get("basis", ""))),
        ("not covered", "\n".join(map(one_line, rehearsal["notes"]))),
    ]


def _range(seconds: list[float] | None) -> str:
    if seconds is None:
        return ""
    low, high = map(duration, seconds)
    return f"about {low}" if low == high else f"{low} to {high}"


def show_findings(screen: Screen, validation: Json | None) -> None:
    if validation is None or validation["passed"]:
        return
    findings = validation["findings"]
    screen.print((f"Validation found {plural(len(findings), 'problem')}:", "red"))
    for finding in findings[:_SHOWN_FINDINGS]:
        place, message = one_line(finding["place"]), one_line(finding["message"])
        screen.print(f"  {finding['code']}  ", (place, "bold"), f"  {shorten(message, 300)}")
        if finding["hint"]:
            screen.print((f"      {one_line(finding['hint'])}", "dim"))
    if len(findings) > _SHOWN_FINDINGS:
        screen.print((f"  and {len(findings) - _SHOWN_FINDINGS} more", "dim"))


def next_step(plan: Json) -> str:
    planning, plan_id = plan["planning"], plan["id"]
    if planning is None:
        return f"Compile it: labwright plan new --from-plan {plan_id}"
    if plan["status"] in ("completed", "failed") and plan["executed_by"]:
        return f"Report: labwright plan report {plan_id}"
    if plan["status"] == "executing":
        return f"Follow it: labwright plan execute {plan_id} --wait · Stop it: labwright plan stop {plan_id}"
    if planning["status"] == "compiling":
        return f"Progress: labwright plan show {plan_id}"
    if planning["status"] == "needs_input":
        return f'Answer: labwright plan answer {plan_id} "…"'
    if planning["status"] == "failed" and not planning["approved"]:
        return f"Then continue: labwright plan new --from-plan {plan_id}"
    if planning["ready_for_run"]:
        return f"Run it: labwright plan execute {plan_id}"
    if planning["validated"]:
        return f"Next: labwright plan review {plan_id}"
    return f"Fix it: labwright plan edit {plan_id} --file FILE, then: labwright plan validate {plan_id}"
