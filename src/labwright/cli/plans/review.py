"""`plan validate`, `review`, `execute`, `stop` and `report`."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any

import typer

from labwright.cli.command import INTERRUPTED, with_client
from labwright.cli.formatting import one_line, size
from labwright.cli.markdown import show_document
from labwright.cli.plans.progress import REDOABLE_NODES, follow_compilation, follow_execution
from labwright.cli.plans.view import (
    next_step,
    plan_line,
    readiness,
    rehearsal_facts,
    show_compiled,
    show_failure,
    show_findings,
)
from labwright.cli.references import PlanRef, plan_id_of
from labwright.cli.screen import Cell, Column, Screen, confirm, warn
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid

Json = dict[str, Any]
_DEFAULT_NODE = "DraftImplementationPlan"
_SHOWN_CHANGES = 5
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]*)\)")  # a terminal shows the path instead
_FILE_COLUMNS = [
    Column("file", "path", shrinks=True),
    Column("size", lambda entry: size(entry["size"]), right=True),
    Column("approved hash", lambda entry: entry["sha256"][:8], style="dim"),
]


@with_client
def validate(
    screen: Screen,
    client: LabClient,
    reference: PlanRef,
    rehearsal: Annotated[
        bool | None,
        typer.Option("--rehearsal/--no-rehearsal", help="With or without the rehearsal. Default: as before."),
    ] = None,
) -> None:
    """Check a plan's current files.

    Exit code 1 if a check finds a problem.
    """
    before = client.plan(plan_id_of(client, reference))
    done = follow_compilation(screen, client, client.validate_plan(before["id"], rehearsal), before)
    if screen.as_json:
        screen.json(client.plan_workspace(done["id"]))
    else:
        show_compiled(screen, client, done)
    if not done["planning"]["validated"]:
        raise typer.Exit(1)


@with_client
def review(
    screen: Screen,
    client: LabClient,
    reference: PlanRef,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the plan as it is now.")] = False,
    digest: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="With --approve: only if the digest starts with this.")
    ] = None,
    reject: Annotated[bool, typer.Option("--reject", help="Reject the plan. Needs --reason.")] = False,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="What to change, or with --approve a note for the record.")
    ] = "",
    node: Annotated[
        str | None, typer.Option(metavar="NODE", help="With --reject: run this node again with the reason.")
    ] = None,
) -> None:
    """Show a plan, then approve or reject it.

    Shows the document, digest, files, validation and rehearsal. At a terminal it then asks for approval.
    """
    if approve and reject:
        raise Invalid("--approve and --reject exclude each other.", hint="Use one of them.")
    plan = client.plan(plan_id_of(client, reference))
    if reject:
        _reject(screen, client, plan, reason, node)
        return
    workspace = client.plan_workspace(plan["id"])
    if not approve:
        if screen.as_json:
            screen.json(workspace)
            return
        _show(screen, plan, workspace)
        approve = _can_ask(screen, plan, workspace) and _ask(screen, client, plan)
    if approve:
        if digest is not None and not workspace["digest"].startswith(digest):
            raise Invalid(
                f"The digest is {workspace['digest'][:16]}…, not {digest}.",
                hint="The plan has changed. Review it again.",
            )
        _approve(screen, client, plan, {"approved": True, "digest": workspace["digest"], "reason": reason})


def _show(screen: Screen, plan: Json, workspace: Json) -> None:
    plan_line(screen, plan)
    screen.print("")
    show_document(plan["raw_markdown"])
    screen.heading("Files")
    screen.table(_FILE_COLUMNS, workspace["files"])
    screen.heading("Review")
    if plan["planning"]:
        screen.facts(_facts(plan["planning"], workspace))
    show_findings(screen, workspace["validation"])
    screen.suggest(f"Show a file: labwright plan show {plan['id']} --file src/experiment/workflow.py")


def _facts(planning: Json, workspace: Json) -> list[tuple[str, Cell]]:
    validated, approved, ready = readiness(planning)
    if changes := workspace["changed_since_validation"]:
        validated = ("validated", (f"no, changed since: {_changes(changes)}", "yellow"))
    return [
        ("digest", workspace["digest"]),
        ("planned by", planning["model"]),
        validated,
        *rehearsal_facts(workspace["rehearsal"]),
        approved,
        ready,
        ("changed since", (_changes(workspace["changed_since_approval"]), "yellow")),
        ("edited files", _changes(workspace["changed_since_compilation"])),
        ("stopped at", "" if planning["node"] in ("", "HumanReview") else planning["node"]),
        ("why", one_line(planning["error"])),
    ]


def _changes(changes: list[str]) -> str:
    more = [f"and {len(changes) - _SHOWN_CHANGES} more"] if len(changes) > _SHOWN_CHANGES else []
    return one_line("; ".join([*changes[:_SHOWN_CHANGES], *more]))


def _can_ask(screen: Screen, plan: Json, workspace: Json) -> bool:
    if not (screen.is_terminal and sys.stdin.isatty()):
        return False
    if plan["planning"] is None or plan["compiling_by"] or plan["planning"]["ready_for_run"]:
        screen.suggest(next_step(plan))
        return False
    if workspace["changed_since_validation"] or workspace["validation"] is None:
        screen.suggest(f"Validate it first: labwright plan validate {plan['id']}")
        return False
    return True


def _ask(screen: Screen, client: LabClient, plan: Json) -> bool:
    """Return whether the user approves. If not, ask for a reason and a node, and reject."""
    if not plan["planning"]["validated"]:
        screen.print(("The plan does not pass validation. Your approval is recorded, but it cannot run.", "yellow"))
    if confirm("Approve this plan?"):
        return True
    reason = typer.prompt("What should change? (Enter: nothing)", default="", show_default=False)
    if reason.strip():
        node = ""
        while node not in REDOABLE_NODES:  # ask again after a mistake, so that the reason is not lost
            if node:
                screen.print((f"{one_line(node)} is not one of: {', '.join(REDOABLE_NODES)}", "yellow"))
            node = typer.prompt("Which node should run again? Press Enter if unsure", default=_DEFAULT_NODE).strip()
        _reject(screen, client, plan, reason, node)
    return False


def _approve(screen: Screen, client: LabClient, plan: Json, review: Json) -> None:
    with screen.working("running the final check"):
        done = client.review_plan(plan["id"], review)
    if screen.as_json:
        screen.json(done)
    else:
        plan_line(screen, done)
        if done["planning"]["status"] == "failed":
            show_failure(screen, done["planning"])
        screen.facts(readiness(done["planning"]))
        screen.suggest(next_step(done))
    if not done["planning"]["ready_for_run"]:
        raise typer.Exit(1)


def _reject(screen: Screen, client: LabClient, plan: Json, reason: str, node: str | None) -> None:
    done = client.review_plan(plan["id"], {"approved": False, "reason": reason, "node": node})
    if node is not None:
        done = follow_compilation(screen, client, done, plan)
    if screen.as_json:
        screen.json(done)
    elif node is not None:
        show_compiled(screen, client, done)
        if not _uses_reason(node, done["planning"]["model"]):
            text = f"{node} follows fixed rules and ignores the reason. To change the plan: --node {_DEFAULT_NODE}"
            screen.print((text, "yellow"))
    else:
        plan_line(screen, done)
        screen.print(("rejected", "yellow"), f": {one_line(reason)}")
        screen.suggest(f"Edit it: labwright plan edit {plan['id']}")


def _uses_reason(node: str, model: str) -> bool:
    """Return whether the node reads the reason. Code that rules write from templates does not depend on it."""
    by_model = ("GenerateTaskTests", "GenerateTaskImplementations", "ValidateWorkspace")
    return node in ("DraftReportDigest", _DEFAULT_NODE) or (node in by_model and not model.startswith("offline rules"))


@with_client
def execute(
    screen: Screen,
    client: LabClient,
    reference: PlanRef,
    wait: Annotated[
        bool, typer.Option("--wait", help="Show progress until it ends. Exit code 1 if it failed.")
    ] = False,
) -> None:
    """Run an approved plan.

    It continues without the terminal and after a restart of the server. A failed plan resumes where it failed. For a
    plan that has ended, only failed runs are repeated.
    """
    plan = client.execute_plan(plan_id_of(client, reference))
    if wait:
        try:
            plan = follow_execution(screen, client, plan)
        except KeyboardInterrupt:
            screen.print(f"\n{plan['id']} continues. Stop it: labwright plan stop {plan['id']}")
            raise typer.Exit(INTERRUPTED) from None
    if screen.as_json:
        screen.json(plan)
    else:
        plan_line(screen, plan)
        screen.facts([("why", one_line(plan["status_reason"]))])
        screen.suggest(next_step(plan))
    if plan["status"] == "failed":
        raise typer.Exit(1)


@with_client
def stop(screen: Screen, client: LabClient, reference: PlanRef) -> None:
    """Stop an execution or compilation, and all its runs."""
    plan = client.stop_plan(plan_id_of(client, reference))
    screen.result(plan, lambda _: plan_line(screen, plan))
    screen.suggest(f"Continue it: labwright plan execute {plan['id']}")


@with_client
def report(screen: Screen, client: LabClient, reference: PlanRef) -> None:
    """Show the report of an execution.

    A pipe gets the Markdown.
    """
    found = client.plan_report(plan_id_of(client, reference))
    if screen.as_json:
        screen.json(found)
        return
    if screen.is_terminal:
        show_document(_PICTURE.sub(r"\1: `results/\2`", found["markdown"]))
        folder = client.paths.plans / found["plan_id"]
        screen.suggest(f"With pictures: {folder / 'results' / 'report.md'}")
    else:
        screen.write(found["markdown"])
    if found["since"]:
        warn(found["since"])
