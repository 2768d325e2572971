"""How a plan stands: what planning asks, what validation found, the three lights, and what to do next."""

from __future__ import annotations

from typing import Any

from labwright.cli.formatting import counted, duration, one_line, shorten
from labwright.cli.screen import Cell, Screen
from labwright.client.lab import LabClient
from labwright.domain.plan_document.document import LOOK_IN_REVIEW

Json = dict[str, Any]
_SHOWN_FINDINGS = 10
_COLUMNS = 100


def show_standing(screen: Screen, client: LabClient, plan: Json) -> None:
    """After a compilation: what came of it, that it is saved, and the next step."""
    planning = plan["planning"]
    if planning["status"] == "failed":
        show_failure(screen, planning)
    elif planning["status"] == "needs_input":
        show_questions(screen, planning["questions"])
    else:
        workspace = client.plan_workspace(plan["id"])
        screen.say((one_line(plan["title"]), "bold"))
        facts = [("runs", runs_of(plan)), *_understood(plan["sections"]), *_tried(workspace), *lights(planning)]
        screen.facts([*facts, ("digest", workspace["digest"][:8])])
        show_findings(screen, workspace["validation"])
    screen.say(f"✅ Plan saved — ID: @{plan['id']}")
    if planning["status"] == "needs_input":
        screen.say(next_step(plan))  # also where nobody watches: it is what the reader has to do
    else:
        screen.next(next_step(plan))


def _understood(sections: Json) -> list[tuple[str, Cell]]:
    """What was made of the goal's words, and what was not: a misreading is seen here first."""
    varied = [f"{row['name']} {', '.join(row['values'])}" for row in sections["parameters"]]
    doubts = [risk["risk"] for risk in sections["risks"] if risk["mitigation"] == LOOK_IN_REVIEW]
    return [
        ("varies", "\n".join(shorten(one_line(row), _COLUMNS) for row in varied)),
        ("look at", ("\n".join(shorten(one_line(doubt), _COLUMNS) for doubt in doubts), "amber")),
    ]


def _tried(workspace: Json) -> list[tuple[str, Cell]]:
    return rehearsal_facts(workspace["rehearsal"])[:3]


def show_failure(screen: Screen, planning: Json) -> None:
    screen.say(("failed", "red"), f" at {planning['node'] or 'the start'}: {one_line(planning['error'])}")


def show_questions(screen: Screen, questions: list[Json]) -> None:
    screen.say((f"Planning has {counted(len(questions), 'question')}:", "amber"))
    for number, question in enumerate(questions, 1):
        screen.say(f"  {number}. {one_line(question['text'])}")
        if question["suggestions"]:
            screen.say((f"     for example: {' · '.join(map(one_line, question['suggestions']))}", "dim"))


def runs_of(plan: Json) -> str:
    return one_line(plan["sections"]["estimated_effort"]["runs"])


def lights(planning: Json) -> list[tuple[str, Cell]]:
    """Three different things, each for itself."""
    return [
        ("validated", yes_or_no(planning["validated"])),
        ("approved", _approved(planning["approval"])),
        ("ready to run", yes_or_no(planning["ready_for_run"])),
    ]


def yes_or_no(fact: bool) -> Cell:
    return ("yes", "green") if fact else ("no", "amber")


def _approved(approval: Json | None) -> Cell:
    if approval is None:
        return yes_or_no(False)
    how = "without a review, as wanted by" if approval["automatic"] else "by"
    why = f" ({one_line(approval['reason'])})" if approval["reason"] else ""
    return f"{how} {approval['by']}{why} · digest {approval['digest'][:8]}", "green"


def rehearsal_facts(rehearsal: Json | None) -> list[tuple[str, Cell]]:
    """Whether the experiment was tried small, and what that says of the whole of it."""
    if rehearsal is None:
        return [("rehearsal", ("none", "amber"))]
    outcome = str(rehearsal["outcome"])
    why = f": {one_line(rehearsal['reason'])}" if rehearsal["reason"] else ""
    style = {"passed": "amber" if why else "green", "failed": "red"}.get(outcome, "amber")
    told = rehearsal["prediction"] or {}
    return [
        ("rehearsal", (f"{outcome.replace('_', ' ')}{why}", style)),
        ("a run takes", _between(told.get("run_seconds"))),
        ("all of it takes", _between(told.get("total_seconds")) and f"{_between(told['total_seconds'])}, {_how(told)}"),
        ("memory", f"{told['memory_mb']:.0f} MB a run" if told.get("memory_mb") else ""),
        ("as known from", one_line(told.get("basis", ""))),
        ("not covered", "\n".join(map(one_line, rehearsal["notes"]))),
    ]


def _between(seconds: list[float] | None) -> str:
    if seconds is None:
        return ""
    low, high = map(duration, seconds)
    return f"about {low}" if low == high else f"{low} to {high}"


def _how(told: Json) -> str:
    return f"{counted(told['runs'], 'run')}, {told['at_a_time']} at a time"


def show_findings(screen: Screen, validation: Json | None) -> None:
    if validation is None or validation["passed"]:
        return
    findings = validation["findings"]
    screen.say((f"Validation found {counted(len(findings), 'fault')}:", "red"))
    for finding in findings[:_SHOWN_FINDINGS]:
        place, message = one_line(finding["place"]), one_line(finding["message"])
        screen.say(f"  {finding['code']}  ", (place, "bold"), f"  {shorten(message, 300)}")
        if finding["hint"]:
            screen.say((f"      {one_line(finding['hint'])}", "dim"))
    if len(findings) > _SHOWN_FINDINGS:
        screen.say((f"  and {len(findings) - _SHOWN_FINDINGS} more", "dim"))


def next_step(plan: Json) -> str:
    planning, plan_id = plan["planning"], plan["id"]
    if planning is None:
        return f"Compile it: labwright plan new --from-plan {plan_id}"
    if plan["status"] in ("completed", "failed") and plan["executed_by"]:
        return f"What it found: labwright plan report {plan_id}"
    if plan["status"] == "executing":
        return f"Watch it: labwright plan execute {plan_id} --wait · stop it: labwright plan stop {plan_id}"
    return _planning_step(planning, plan_id)


def _planning_step(planning: Json, plan_id: str) -> str:
    if planning["status"] == "compiling":
        return f"See how far it is: labwright plan show {plan_id}"
    if planning["status"] == "needs_input":
        return f'Answer: labwright plan answer {plan_id} "…"'
    if planning["status"] == "failed" and not planning["approved"]:
        return f"Then go on: labwright plan new --from-plan {plan_id}"
    if planning["ready_for_run"]:
        return f"Run it: labwright plan execute {plan_id}"
    if planning["validated"]:
        return f"Next: labwright plan review {plan_id}"
    return f"Mend it: labwright plan edit {plan_id} --file FILE, then: labwright plan validate {plan_id}"
