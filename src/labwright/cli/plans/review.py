"""`plan validate`, `review`, `execute`, `stop` and `report`: from a compiled plan to what it found out."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any

import typer

from labwright.cli.asking import confirm
from labwright.cli.formatting import one_line, size
from labwright.cli.markdown import show_document
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.plans.ids import PlanRef, plan_id_of
from labwright.cli.plans.progress import REDONE_BY, follow_compilation, follow_execution
from labwright.cli.plans.screen import plan_line
from labwright.cli.plans.view import (
    lights,
    next_step,
    rehearsal_facts,
    show_failure,
    show_findings,
    show_standing,
)
from labwright.cli.screen import Cell, Column, Screen, warn
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid

Json = dict[str, Any]
_DEFAULT_NODE = "DraftImplementationPlan"
_SHOWN_CHANGES = 5
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]*)\)")  # a terminal shows where it lies


def validate(
    reference: PlanRef,
    rehearsal: Annotated[
        bool | None, typer.Option("--rehearsal/--no-rehearsal", help="With or without the rehearsal; else as before.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Check a plan's files as they now are.

    Exit 1 if a check finds something.
    """
    screen, client = Screen(as_json=as_json), connect(project)
    before = client.plan(plan_id_of(client, reference))
    begun = client.validate_plan(before["id"], rehearsal)
    done = follow_compilation(screen, client, begun, before)
    if as_json:
        screen.json(client.plan_workspace(done["id"]))
    else:
        show_standing(screen, client, done)
    if not done["planning"]["validated"]:
        raise typer.Exit(1)


def review(
    reference: PlanRef,
    approve: Annotated[bool, typer.Option("--approve", help="Approve it as it now is.")] = False,
    digest: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="With --approve: only if this is its digest, or its beginning.")
    ] = None,
    reject: Annotated[bool, typer.Option("--reject", help="Do not approve it; needs --reason.")] = False,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="What is to be different; or what to record with --approve.")
    ] = "",
    node: Annotated[
        str | None, typer.Option(metavar="NODE", help="With --reject: do this node again, with the reason.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Look at a plan, then approve or reject it.

    Shows the document, the digest, the files, what validation and rehearsal said; at a terminal it then asks.
    """
    screen, client = Screen(as_json=as_json), connect(project)
    if approve and reject:
        raise Invalid("A plan is approved or rejected, not both.", hint="Leave one of the two out.")
    plan = client.plan(plan_id_of(client, reference))
    if reject:
        _reject(screen, client, plan, reason, node)
        return
    workspace = client.plan_workspace(plan["id"])
    if not approve:
        if as_json:
            screen.json(workspace)
            return
        _show(screen, plan, workspace)
        approve = _asks(screen, plan, workspace) and _ask(screen, client, plan)
    if approve:
        _check_digest(workspace, digest)
        _approve(screen, client, plan, {"approved": True, "digest": workspace["digest"], "reason": reason})


def _show(screen: Screen, plan: Json, workspace: Json) -> None:
    plan_line(screen, plan)
    screen.say("")
    show_document(plan["raw_markdown"])
    screen.heading("Files")
    columns = [Column(title="file", shrinks=True), Column(title="size", right=True), Column(title="approved with it")]
    rows: list[list[Cell]] = [
        [entry["path"], size(entry["size"]), (entry["sha256"][:8], "dim")] for entry in workspace["files"]
    ]
    screen.table(columns, rows)
    screen.heading("Review")
    if plan["planning"]:
        screen.facts(_facts(plan["planning"], workspace))
    show_findings(screen, workspace["validation"])
    screen.next(f"Read a file: labwright plan show {plan['id']} --file src/experiment/workflow.py")


def _facts(planning: Json, workspace: Json) -> list[tuple[str, Cell]]:
    validated, approved, ready = lights(planning)
    if workspace["changed_since_validation"]:
        validated = ("validated", (f"no, changed since: {_changes(workspace['changed_since_validation'])}", "amber"))
    return [
        ("digest", workspace["digest"]),
        ("planned by", planning["model"]),
        validated,
        *rehearsal_facts(workspace["rehearsal"]),
        approved,
        ready,
        ("changed since", (_changes(workspace["changed_since_approval"]), "amber")),
        ("new in it", _changes(workspace["changed_since_compilation"])),
        ("stopped at", "" if planning["node"] in ("", "HumanReview") else planning["node"]),
        ("why", one_line(planning["error"])),
    ]


def _changes(words: list[str]) -> str:
    more = [f"and {len(words) - _SHOWN_CHANGES} more"] if len(words) > _SHOWN_CHANGES else []
    return one_line("; ".join([*words[:_SHOWN_CHANGES], *more]))


def _asks(screen: Screen, plan: Json, workspace: Json) -> bool:
    if not (screen.is_terminal and sys.stdin.isatty()):
        return False
    if plan["planning"] is None or plan["compiling_by"] or plan["planning"]["ready_for_run"]:
        screen.next(next_step(plan))
        return False
    if workspace["changed_since_validation"] or workspace["validation"] is None:
        screen.next(f"Have it checked first: labwright plan validate {plan['id']}")
        return False
    return True


def _ask(screen: Screen, client: LabClient, plan: Json) -> bool:
    """Yes approves; no asks why, and which node is to try again."""
    if not plan["planning"]["validated"]:
        screen.say(("It does not pass validation: an approval is recorded, and it still cannot run.", "amber"))
    if confirm("Approve this plan?"):
        return True
    reason = typer.prompt("What is to be different? (Enter leaves it as it is)", default="", show_default=False)
    if reason.strip():
        _reject(screen, client, plan, reason, _ask_node(screen))
    return False


def _ask_node(screen: Screen) -> str:
    """Once more after a slip, so that the reason is not lost."""
    node = ""
    while node not in REDONE_BY:
        if node:
            screen.say((f"{one_line(node)} is none of them: {', '.join(REDONE_BY)}", "amber"))
        node = typer.prompt("Which node is to do it again? Enter if unsure", default=_DEFAULT_NODE).strip()
    return node


def _check_digest(workspace: Json, wanted: str | None) -> None:
    if wanted is not None and not workspace["digest"].startswith(wanted):
        raise Invalid(
            f"Its digest is {workspace['digest'][:16]}…, not {wanted}.", hint="It was changed: look at it again."
        )


def _approve(screen: Screen, client: LabClient, plan: Json, review: Json) -> None:
    with screen.working("Final check …"):
        done = client.review_plan(plan["id"], review)
    if screen.as_json:
        screen.json(done)
    else:
        plan_line(screen, done)
        if done["planning"]["status"] == "failed":
            show_failure(screen, done["planning"])
        screen.facts(lights(done["planning"]))
        screen.next(next_step(done))
    if not done["planning"]["ready_for_run"]:
        raise typer.Exit(1)


def _reject(screen: Screen, client: LabClient, plan: Json, reason: str, node: str | None) -> None:
    done = client.review_plan(plan["id"], {"approved": False, "reason": reason, "node": node})
    if node is not None:
        done = follow_compilation(screen, client, done, plan)
    if screen.as_json:
        screen.json(done)
    elif node is not None:
        show_standing(screen, client, done)
        if not _reads_reasons(node, done["planning"]["model"]):
            words = f"{node} works by rules and read no reason. To try other things: --node {_DEFAULT_NODE}"
            screen.say((words, "amber"))
    else:
        plan_line(screen, done)
        screen.say(("rejected", "amber"), f": {one_line(reason)}")
        screen.next(f"Change it: labwright plan edit {plan['id']}")


def _reads_reasons(node: str, model: str) -> bool:
    """What only follows from the draft is made again as it was; so is code, where rules write it by template."""
    by_model = ("GenerateTaskTests", "GenerateTaskImplementations", "ValidateWorkspace")
    return node in ("DraftReportDigest", _DEFAULT_NODE) or (node in by_model and not model.startswith("offline rules"))


def execute(
    reference: PlanRef,
    wait: Annotated[bool, typer.Option("--wait", help="Show its progress until it ends; exit 1 if it failed.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Run an approved plan.

    It goes on without the terminal, and after a restart of the server. A plan that failed goes on where it was; of one
    that ended, runs that failed are made again, and no others.
    """
    screen, client = Screen(as_json=as_json), connect(project)
    plan = client.execute_plan(plan_id_of(client, reference))
    if wait:
        plan = _wait(screen, client, plan)
    if as_json:
        screen.json(plan)
    else:
        plan_line(screen, plan)
        screen.facts([("why", one_line(plan["status_reason"]))])
        screen.next(next_step(plan))
    if plan["status"] == "failed":
        raise typer.Exit(1)


def _wait(screen: Screen, client: LabClient, plan: Json) -> Json:
    """Leaving with Ctrl-C leaves the plan alone."""
    try:
        return follow_execution(screen, client, plan)
    except KeyboardInterrupt:
        screen.say(f"\n{plan['id']} goes on. Stop it: labwright plan stop {plan['id']}")
        raise typer.Exit(130) from None


def stop(reference: PlanRef, project: Project = None, as_json: AsJson = False) -> None:
    """Stop an execution, or a compilation, with all the runs that it started."""
    screen, client = Screen(as_json=as_json), connect(project)
    plan = client.stop_plan(plan_id_of(client, reference))
    if as_json:
        screen.json(plan)
        return
    plan_line(screen, plan)
    screen.next(f"Go on with it: labwright plan execute {plan['id']}")


def report(reference: PlanRef, project: Project = None, as_json: AsJson = False) -> None:
    """Show what an execution found out.

    Into a pipe goes the Markdown itself.
    """
    screen, client = Screen(as_json=as_json), connect(project)
    found = client.plan_report(plan_id_of(client, reference))
    if as_json:
        screen.json(found)
        return
    if screen.is_terminal:
        show_document(_PICTURE.sub(r"\1: `results/\2`", found["markdown"]))
        folder = client.paths.plans / found["plan_id"]
        screen.next(f"With its pictures: {folder / 'results' / 'report.md'}")
    else:
        screen.output(found["markdown"])
    if found["since"]:
        warn(found["since"])
