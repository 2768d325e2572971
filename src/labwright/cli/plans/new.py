"""`plan new` and `plan answer`: compile a goal to a plan that waits for review."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from labwright.cli.command import with_client
from labwright.cli.formatting import one_line, shorten
from labwright.cli.plans.progress import follow_compilation
from labwright.cli.plans.view import show_compiled, show_questions
from labwright.cli.references import PlanRef, plan_id_of
from labwright.cli.screen import Screen, note
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.plan import PlanStatus

Json = dict[str, Any]
_LONGEST_TITLE = 80
_UNCHANGEABLE = (PlanStatus.COMPLETED, PlanStatus.ARCHIVED, PlanStatus.EXECUTING)


@with_client
def new(
    screen: Screen,
    client: LabClient,
    goal: Annotated[
        str,
        typer.Argument(
            metavar="GOAL", help="What to vary, over which values, and the metric to compare by.", show_default=False
        ),
    ] = "",
    report: Annotated[
        str | None, typer.Option(metavar="FILE", help="Plan from a text such as a report or notes. - reads stdin.")
    ] = None,
    from_plan: Annotated[
        str | None, typer.Option(metavar="PLAN", help="Compile a saved plan. GOAL says what to change.")
    ] = None,
    from_node: Annotated[
        str | None, typer.Option(metavar="NODE", help="With --from-plan: restart at this node.")
    ] = None,
    no_rehearsal: Annotated[
        bool, typer.Option("--no-rehearsal", help="Skip the small trial run. The review shows that.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Approve without a review if all checks pass. This is recorded.")
    ] = False,
) -> None:
    """Create a plan from a goal, a report or a saved plan.

    \b
    labwright plan "lr between 1e-4 and 1e-1 for train.py, metric val_acc"
    labwright plan --report paper.md
    labwright plan --from-plan PLAN

    The word `new` can be left out. Planning asks up to three questions if something is unclear: at a terminal
    directly, otherwise it prints them. Exit code 1 if it asks, fails, or does not pass validation.
    """
    options: Json = {"rehearsal": not no_rehearsal, "auto_approve": yes}
    before = None
    if report is not None:
        options["report"] = read_text(report, binary_hint="Convert it to text first; for a PDF: pdftotext FILE.pdf")
    if from_plan is not None:
        before = client.plan(plan_id_of(client, from_plan))
        plan = _compile_saved(client, before, goal, {**options, "from_node": from_node})
    elif from_node is not None:
        raise Invalid("--from-node needs --from-plan.", hint="Add --from-plan PLAN.")
    else:
        title = shorten(one_line(goal), _LONGEST_TITLE) or f"From {Path(report).name if report else 'nothing'}"
        plan = client.create_plan({"title": title, "goal": goal, "compile": options})
    _finish(screen, client, plan, before)


@with_client
def answer(
    screen: Screen,
    client: LabClient,
    reference: PlanRef,
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS", help="One answer per question, or all answers in one.")
    ],
) -> None:
    """Answer the questions of planning. Planning then continues."""
    before = client.plan(plan_id_of(client, reference))
    if not before["planning"] or before["planning"]["status"] != "needs_input":
        raise Conflict(
            f"Plan {before['id']} has no open questions.", hint=f"See its status: labwright plan show {before['id']}"
        )
    plan = client.compile_plan(before["id"], {"answers": [word for word in words if word.strip()]})
    _finish(screen, client, plan, before)


def read_text(file: str, *, binary_hint: str = "Save it as UTF-8.") -> str:
    """Read a file, or standard input for `-`."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return content.decode()
    except OSError as error:
        hint = "Name an existing file, or - for standard input."
        raise Invalid(f"{file} cannot be read: {error.strerror}.", hint=hint) from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{file} is not UTF-8 text (byte {error.start}).", hint=binary_hint) from error


def _compile_saved(client: LabClient, before: Json, goal: str, options: Json) -> Json:
    if goal.strip():
        options["answers"] = [goal]
    if before["status"] not in _UNCHANGEABLE:
        return client.compile_plan(before["id"], options)
    note(f"{before['id']} is {before['status']} and cannot be changed. Creating a new plan from its text.")
    texts = {name: before[name] for name in ("title", "goal", "raw_markdown")}
    return client.create_plan({**texts, "compile": options})


def _finish(screen: Screen, client: LabClient, plan: Json, before: Json | None) -> None:
    """Follow the compilation, and ask the user if planning has questions."""
    while True:
        done = follow_compilation(screen, client, plan, before)
        answers = _ask(screen, done) if done["planning"]["status"] == "needs_input" else []
        if not answers:
            break
        before, plan = done, client.compile_plan(done["id"], {"answers": answers})
    screen.result(done, lambda _: show_compiled(screen, client, done))
    planning = done["planning"]
    if planning["status"] not in ("waiting_for_review", "ready_for_run") or not planning["validated"]:
        raise typer.Exit(1)


def _ask(screen: Screen, plan: Json) -> list[str]:
    """Return one answer per question, or nothing if nobody answers now."""
    if screen.as_json or not screen.is_terminal or not sys.stdin.isatty():
        return []
    questions = plan["planning"]["questions"]
    show_questions(screen, questions)
    answers: list[str] = []
    for index in range(1, len(questions) + 1):
        text = typer.prompt(f"{index}", default="", show_default=False).strip()
        if not text:
            return []
        answers.append(text)
    return answers
