"""`plan new` and `plan answer`: from a goal to a plan that waits for its review, with the questions in between."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from labwright.cli.formatting import one_line, shorten
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.plans.ids import PlanRef, plan_id_of
from labwright.cli.plans.progress import follow_compilation
from labwright.cli.plans.view import show_questions, show_standing
from labwright.cli.screen import Screen, note
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.plan import PlanStatus

Json = dict[str, Any]
_LONGEST_TITLE = 80
_STAYS_AS_IT_IS = (PlanStatus.COMPLETED, PlanStatus.ARCHIVED, PlanStatus.EXECUTING)

Goal = Annotated[
    str, typer.Argument(metavar="GOAL", help="What to vary, over which values, by which metric.", show_default=False)
]
Report = Annotated[
    str | None, typer.Option(metavar="FILE", help="A text to plan from: a report, notes; - for standard input.")
]
FromPlan = Annotated[
    str | None, typer.Option(metavar="PLAN", help="Compile a plan that was saved. GOAL says what is to be different.")
]
FromNode = Annotated[str | None, typer.Option(metavar="NODE", help="With --from-plan: begin again at this node.")]
NoRehearsal = Annotated[
    bool, typer.Option("--no-rehearsal", help="Do not try the experiment small first; the review shows it.")
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Approve what passes every check without a review. It is recorded.")
]


def new(
    goal: Goal = "",
    report: Report = None,
    from_plan: FromPlan = None,
    from_node: FromNode = None,
    no_rehearsal: NoRehearsal = False,
    yes: Yes = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Make a plan from a goal, a report or a saved text.

    \b
    labwright plan "lr between 1e-4 and 1e-1 for train.py, metric val_acc"
    labwright plan --report paper.md
    labwright plan --from-plan PLAN

    The word `new` may be left out. What is not clear is asked: three questions at most, at a terminal; elsewhere they
    are printed, with how to answer. Exit 1 if it asks, fails, or does not pass validation.
    """
    screen, client = Screen(as_json=as_json), connect(project)
    wanted: Json = {"rehearsal": not no_rehearsal, "auto_approve": yes}
    if report is not None:
        wanted["report"] = _report(report)
    if from_plan is not None:
        before = client.plan(plan_id_of(client, from_plan))
        plan = _from_saved(client, before, goal, {**wanted, "from_node": from_node})
    elif from_node is not None:
        raise Invalid("--from-node goes with --from-plan.", hint="Name the plan, too.")
    else:
        before = None
        plan = client.create_plan({"title": _title(goal, report), "goal": goal, "compile": wanted})
    _converse(screen, client, plan, before)


def answer(
    reference: PlanRef,
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="One for each question, or all in one.")],
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Answer what planning asked; it goes on from there."""
    screen, client = Screen(as_json=as_json), connect(project)
    before = client.plan(plan_id_of(client, reference))
    if not before["planning"] or before["planning"]["status"] != "needs_input":
        raise Conflict(
            f"Plan {before['id']} asks nothing.", hint=f"See how it stands: labwright plan show {before['id']}"
        )
    plan = client.compile_plan(before["id"], {"answers": [word for word in words if word.strip()]})
    _converse(screen, client, plan, before)


def _report(file: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}.", hint="Name a file, or - for it.") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        hint = "Save it as text first; for a PDF: pdftotext FILE.pdf"
        raise Invalid(f"{file} is not text in UTF-8 (byte {error.start}).", hint=hint) from error


def _title(goal: str, report: str | None) -> str:
    return shorten(one_line(goal), _LONGEST_TITLE) or f"From {Path(report).name if report else 'nothing'}"


def _from_saved(client: LabClient, before: Json, goal: str, wanted: Json) -> Json:
    if goal.strip():
        wanted["answers"] = [goal]
    if before["status"] not in _STAYS_AS_IT_IS:
        return client.compile_plan(before["id"], wanted)
    note(f"{before['id']} is {before['status']} and stays as it is; this is a new plan from its text.")
    texts = {name: before[name] for name in ("title", "goal", "raw_markdown")}
    return client.create_plan({**texts, "compile": wanted})


def _converse(screen: Screen, client: LabClient, plan: Json, before: Json | None) -> None:
    """Until planning asks nothing more, or nobody is there to answer."""
    while True:
        done = follow_compilation(screen, client, plan, before)
        answers = _ask(done) if _can_ask(screen, done) else []
        if not answers:
            break
        before, plan = done, client.compile_plan(done["id"], {"answers": answers})
    if screen.as_json:
        screen.json(done)
    else:
        show_standing(screen, client, done)
    planning = done["planning"]
    if planning["status"] not in ("waiting_for_review", "ready_for_run") or not planning["validated"]:
        raise typer.Exit(1)


def _can_ask(screen: Screen, plan: Json) -> bool:
    asks = plan["planning"]["status"] == "needs_input"
    return asks and not screen.as_json and screen.is_terminal and sys.stdin.isatty()


def _ask(plan: Json) -> list[str]:
    """One answer a question; an empty one leaves it for later."""
    show_questions(Screen(), plan["planning"]["questions"])
    answers = []
    for number in range(1, len(plan["planning"]["questions"]) + 1):
        words = typer.prompt(f"{number}", default="", show_default=False).strip()
        if not words:
            return []
        answers.append(words)
    return answers
