"""Plans as documents: save, list, read, edit, archive and delete them. The verbs around them are in `plan_new.py` and
`plan_review.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from labwright.cli.asking import confirm_deletion
from labwright.cli.formatting import visible
from labwright.cli.goal_group import NEW, GoalGroup
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.plans.editor import edit_text
from labwright.cli.plans.ids import PlanRef, plan_id_of
from labwright.cli.plans.new import answer, new
from labwright.cli.plans.review import execute, report, review, stop, validate
from labwright.cli.plans.screen import plan_in_full, plan_line, plan_table, show_faults, version_table
from labwright.cli.screen import Screen, note
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, LabwrightError, NotFound
from labwright.domain.plan import PlanStatus
from labwright.domain.plan_document.reader import LONGEST, read

Json = dict[str, Any]
_LONGEST_TITLE = 200

plan = typer.Typer(
    cls=GoalGroup,
    subcommand_metavar="GOAL | COMMAND [ARGS]...",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
)
plan.command(NEW)(new)
plan.command("answer")(answer)
plan.command("validate")(validate)
plan.command("review")(review)
plan.command("execute")(execute)
plan.command("stop")(stop)
plan.command("report")(report)


@plan.callback(epilog="The whole way: docs/how-to/plan-an-experiment.md")
def _plan() -> None:
    """Two forms: a goal in quotes makes a new plan, a command does something with one that is there.

    \b
    labwright plan "lr between 1e-4 and 1e-1 for train.py, metric val_acc"
    labwright plan review PLAN
    """


@plan.command("list")
def list_plans(
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="Only these, comma-separated.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """List plans, newest first."""
    screen = Screen(as_json=as_json)
    found = connect(project).plans(status or (",".join(PlanStatus) if everything else None))
    if as_json:
        screen.json(found)
    elif not found:
        screen.say('No plans yet. Make one: labwright plan "what to vary, over which values, by which metric"')
    else:
        plan_table(screen, found)
        screen.next("Read one: labwright plan show PLAN")


@plan.command("show")
def show(
    reference: PlanRef,
    version: Annotated[int | None, typer.Option(min=1, metavar="N", help="As it was saved then.")] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A file of its workspace instead, e.g. src/experiment/workflow.py."),
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Show a plan; into a pipe go its bytes as they were saved."""
    screen, client = Screen(as_json=as_json), connect(project)
    plan_id = plan_id_of(client, reference)
    if file is not None:
        _show_file(screen, client.plan_file(plan_id, file))
        return
    found = client.plan(plan_id)
    if version is not None and version != found["version"]:
        found = _at_version(client, found, version)
    if as_json:
        screen.json(found)
    elif screen.is_terminal:
        plan_in_full(screen, found)
    else:
        screen.output(found["raw_markdown"])


def _show_file(screen: Screen, found: Json) -> None:
    if screen.as_json:
        screen.json(found)
    else:
        screen.output(visible(found["content"]) if screen.is_terminal else found["content"])


def _at_version(client: LabClient, found: Json, version: int) -> Json:
    for old in client.plan_versions(found["id"]):
        if old["version"] == version:
            return {**found, **old, "format": _format_of(old["raw_markdown"]), "sections": None}
    raise NotFound(f"Plan {found['id']} has no version {version}.", hint=f"The newest is {found['version']}.")


def _format_of(text: str) -> Json:
    document = read(text)
    faults = [{"line": fault.line, "message": fault.message, "hint": fault.hint} for fault in document.faults]
    return {"valid": document.valid, "errors": faults}


@plan.command("save")
def save(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The plan as Markdown; - for standard input.")],
    goal: Annotated[str | None, typer.Option(metavar="TEXT", help="Default: the plan's Objective.")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Default: the plan's own title.")] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Save a file as a new plan, whatever its form, and say what is wrong with it."""
    text = _text_of(file)
    document = read(text)
    sections = document.sections
    name = title or sections.title[:_LONGEST_TITLE]
    if not name and len(text) > LONGEST:
        raise Invalid(document.faults[0].message, hint=document.faults[0].hint)
    if not name:
        raise Invalid("The text has no title.", hint="Begin it with `## 📋 Plan: a title`, or add --title.")
    wanted = {"title": name, "goal": sections.objective if goal is None else goal, "raw_markdown": text}
    _tell(Screen(as_json=as_json), connect(project).create_plan(wanted))


def _text_of(file: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return content.decode()
    except OSError as error:
        raise Invalid(
            f"{file} cannot be read: {error.strerror}.", hint="Name a file, or - for standard input."
        ) from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{file} is not UTF-8 (byte {error.start}).", hint="Save it as UTF-8.") from error


@plan.command("edit")
def edit(
    reference: PlanRef,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of its workspace instead: code, a test, the IR.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Open a plan in $EDITOR; what is saved there becomes a new version, and takes an approval back."""
    screen, client = Screen(as_json=as_json), connect(project)
    plan_id = plan_id_of(client, reference)
    if file is not None:
        _edit_file(screen, client, plan_id, client.plan_file(plan_id, file))
        return
    found = client.plan(plan_id)
    with edit_text(found["raw_markdown"], f"{found['id']}.md") as edited:
        if edited.text == found["raw_markdown"]:
            note("Nothing was changed.")
            return
        try:
            saved = client.change_plan(found["id"], {"raw_markdown": edited.text, "version": found["version"]})
        except LabwrightError as error:
            error.hint = f"{error.hint} Your text is in {edited.keep()}.".strip()
            raise
    _tell(screen, saved)


def _edit_file(screen: Screen, client: LabClient, plan_id: str, found: Json) -> None:
    with edit_text(found["content"], Path(found["path"]).name) as edited:
        if edited.text == found["content"]:
            note("Nothing was changed.")
            return
        try:
            saved = client.write_plan_file(plan_id, found["path"], edited.text, found["sha256"])
        except LabwrightError as error:
            error.hint = f"{error.hint} Your text is in {edited.keep()}.".strip()
            raise
    if screen.as_json:
        screen.json(saved)
        return
    screen.say((plan_id, "bold"), f"  {saved['path']} saved")
    screen.next(f"Have it checked: labwright plan validate {plan_id}")


@plan.command("versions")
def versions(reference: PlanRef, project: Project = None, as_json: AsJson = False) -> None:
    """List every version of a plan that was saved."""
    screen, client = Screen(as_json=as_json), connect(project)
    plan_id = plan_id_of(client, reference)
    found = client.plan_versions(plan_id)
    if as_json:
        screen.json(found)
    else:
        version_table(screen, found)
        screen.next(f"Read an old one: labwright plan show {plan_id} --version 1")


@plan.command("archive")
def archive(reference: PlanRef, project: Project = None, as_json: AsJson = False) -> None:
    """Take a plan out of the usual lists."""
    screen, client = Screen(as_json=as_json), connect(project)
    archived = client.archive_plan(plan_id_of(client, reference))
    if as_json:
        screen.json(archived)
    else:
        plan_line(screen, archived)


@plan.command("delete")
def delete(
    reference: PlanRef,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Delete a plan with all its versions and files, for ever."""
    screen, client = Screen(as_json=as_json), connect(project)
    found = client.plan(plan_id_of(client, reference))
    if not yes:
        confirm_deletion(f"  {found['id']}  {found['title']}\nDelete this plan with all its versions, for ever?")
    client.delete_plan(found["id"])
    if as_json:
        screen.json([found["id"]])
    else:
        screen.say((found["id"], "bold"), "  deleted")


def _tell(screen: Screen, saved: Json) -> None:
    if screen.as_json:
        screen.json(saved)
        return
    plan_line(screen, saved)
    show_faults(screen, saved["format"])
    way = "Compile it: labwright plan new --from-plan" if saved["format"]["valid"] else "Mend it: labwright plan edit"
    screen.next(f"{way} {saved['id']}")
