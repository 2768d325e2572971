"""Plans as documents: save, list, show, edit, archive and delete them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from labwright.cli.command import NEW, GoalGroup, Yes, group, with_client
from labwright.cli.formatting import visible
from labwright.cli.plans.new import answer, new, read_text
from labwright.cli.plans.review import execute, report, review, stop, validate
from labwright.cli.plans.view import COLUMNS, VERSION_COLUMNS, plan_in_full, plan_line, show_faults
from labwright.cli.references import PlanRef, plan_id_of
from labwright.cli.screen import Screen, confirm_deletion, note
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, LabwrightError, NotFound
from labwright.domain.plan import PlanStatus
from labwright.domain.plan_document.reader import LONGEST, read

Json = dict[str, Any]
_LONGEST_TITLE = 200
_FALLBACK_EDITORS = ("nano", "vi")

plan = group(GoalGroup, subcommand_metavar="GOAL | COMMAND [ARGS]...", no_args_is_help=True)
plan.command(NEW)(new)
plan.command("answer")(answer)
plan.command("validate")(validate)
plan.command("review")(review)
plan.command("execute")(execute)
plan.command("stop")(stop)
plan.command("report")(report)


@plan.callback(epilog="Guide: docs/how-to/plan-an-experiment.md")
def _plan() -> None:
    """A goal in quotes creates a new plan. A command works with an existing plan.

    \b
    labwright plan "lr between 1e-4 and 1e-1 for train.py, metric val_acc"
    labwright plan review PLAN
    """


@plan.command("list")
@with_client
def list_plans(
    screen: Screen,
    client: LabClient,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only plans with these statuses, comma-separated.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="List archived plans too.")] = False,
) -> None:
    """List plans, newest first."""
    screen.listing(
        client.plans(status or (",".join(PlanStatus) if everything else None)),
        COLUMNS,
        empty='No plans yet. Create one: labwright plan "what to vary, over which values, by which metric"',
        then="Details: labwright plan show PLAN",
    )


@plan.command("show")
@with_client
def show(
    screen: Screen,
    client: LabClient,
    reference: PlanRef,
    version: Annotated[int | None, typer.Option(min=1, metavar="N", help="Show this version.")] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Show a file of its workspace instead, e.g. src/experiment/workflow.py."),
    ] = None,
) -> None:
    """Show a plan. A pipe gets the saved text unchanged."""
    plan_id = plan_id_of(client, reference)
    if file is not None:
        content = client.plan_file(plan_id, file)
        text = content["content"]
        screen.result(content, lambda _: screen.write(visible(text) if screen.is_terminal else text))
        return
    found = client.plan(plan_id)
    if version is not None and version != found["version"]:
        found = _at_version(client, found, version)
    if screen.as_json:
        screen.json(found)
    elif screen.is_terminal:
        plan_in_full(screen, found)
    else:
        screen.write(found["raw_markdown"])


def _at_version(client: LabClient, found: Json, version: int) -> Json:
    for old in client.plan_versions(found["id"]):
        if old["version"] == version:
            document = read(old["raw_markdown"])
            faults = [{"line": fault.line, "message": fault.message, "hint": fault.hint} for fault in document.faults]
            return {**found, **old, "format": {"valid": document.valid, "errors": faults}, "sections": None}
    raise NotFound(f"Plan {found['id']} has no version {version}.", hint=f"The newest version is {found['version']}.")


@plan.command("save")
@with_client
def save(
    screen: Screen,
    client: LabClient,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The plan in Markdown. - reads standard input.")],
    goal: Annotated[str | None, typer.Option(metavar="TEXT", help="Default: the plan's Objective.")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Default: the title in the document.")] = None,
) -> None:
    """Save a file as a new plan, and show format errors.

    A plan with format errors is saved too.
    """
    text = read_text(file)
    document = read(text)
    name = title or document.sections.title[:_LONGEST_TITLE]
    if not name and len(text) > LONGEST:
        raise Invalid(document.faults[0].message, hint=document.faults[0].hint)
    if not name:
        raise Invalid("The text has no title.", hint="Start it with `## 📋 Plan: a title`, or add --title.")
    objective = document.sections.objective if goal is None else goal
    _show_saved(screen, client.create_plan({"title": name, "goal": objective, "raw_markdown": text}))


def _show_saved(screen: Screen, saved: Json) -> None:
    if screen.as_json:
        screen.json(saved)
        return
    plan_line(screen, saved)
    show_faults(screen, saved["format"])
    step = "Compile it: labwright plan new --from-plan" if saved["format"]["valid"] else "Fix it: labwright plan edit"
    screen.suggest(f"{step} {saved['id']}")


@plan.command("edit")
@with_client
def edit(
    screen: Screen,
    client: LabClient,
    reference: PlanRef,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Edit a file of its workspace instead: code, a test, the IR.")
    ] = None,
) -> None:
    """Open a plan in $EDITOR. Saving creates a new version and withdraws an approval."""
    plan_id = plan_id_of(client, reference)
    found = client.plan(plan_id) if file is None else client.plan_file(plan_id, file)
    text, name = found["raw_markdown" if file is None else "content"], f"{plan_id}.md" if file is None else file
    with _edit_text(text, Path(name).name) as edited:
        if edited.text == text:
            note("No changes.")
            return
        try:
            if file is None:
                changes = {"raw_markdown": edited.text, "version": found["version"]}
                saved = client.change_plan(plan_id, changes)
            else:
                saved = client.write_plan_file(plan_id, found["path"], edited.text, found["sha256"])
        except LabwrightError as error:
            error.hint = f"{error.hint} Your text is in {edited.keep()}.".strip()
            raise
    if file is None:
        _show_saved(screen, saved)
        return
    screen.result(saved, lambda _: screen.item(plan_id, f"{saved['path']} saved"))
    screen.suggest(f"Validate it: labwright plan validate {plan_id}")


class _EditedFile:
    """A file in the user's editor. It is kept if its text cannot be saved."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept = False

    @property
    def text(self) -> str:
        try:
            return self.path.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise Invalid("The edited text is not UTF-8.", hint=f"Your text is in {self.keep()}.") from error

    def keep(self) -> Path:
        self.kept = True
        return self.path


@contextmanager
def _edit_text(text: str, name: str) -> Iterator[_EditedFile]:
    folder = Path(tempfile.mkdtemp(prefix="labwright-"))
    edited = _EditedFile(folder / name)
    try:
        edited.path.write_bytes(text.encode())
        _open(edited)
        yield edited
    finally:
        if not edited.kept:
            shutil.rmtree(folder)


def _open(edited: _EditedFile) -> None:
    command = _editor()
    try:
        code = subprocess.run([*command, str(edited.path)], check=False).returncode
    except OSError as error:
        raise Invalid(f"{command[0]} cannot be started: {error.strerror}.", hint="Set EDITOR.") from error
    if code != 0:
        raise Invalid(f"{command[0]} exited with {code}; nothing was saved.", hint=f"Your text is in {edited.keep()}.")


def _editor() -> list[str]:
    chosen = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if chosen:
        return chosen
    found = next((name for name in _FALLBACK_EDITORS if shutil.which(name)), None)
    if found is None:
        raise Invalid("No editor was found.", hint="Set EDITOR, for example: export EDITOR=nano")
    return [found]


@plan.command("versions")
@with_client
def versions(screen: Screen, client: LabClient, reference: PlanRef) -> None:
    """List the saved versions of a plan."""
    plan_id = plan_id_of(client, reference)
    then = f"Show an old version: labwright plan show {plan_id} --version 1"
    screen.listing(client.plan_versions(plan_id), VERSION_COLUMNS, empty="No versions.", then=then)


@plan.command("archive")
@with_client
def archive(screen: Screen, client: LabClient, reference: PlanRef) -> None:
    """Remove a plan from the default lists."""
    archived = client.archive_plan(plan_id_of(client, reference))
    screen.result(archived, lambda _: plan_line(screen, archived))


@plan.command("delete")
@with_client
def delete(screen: Screen, client: LabClient, reference: PlanRef, yes: Yes = False) -> None:
    """Delete a plan with all its versions and files permanently."""
    found = client.plan(plan_id_of(client, reference))
    if not yes:
        confirm_deletion(f"  {found['id']}  {found['title']}\nDelete this plan with all its versions permanently?")
    client.delete_plan(found["id"])
    screen.result([found["id"]], lambda _: screen.item(found["id"], "deleted"))
