"""What agents ask a person for."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from labwright.cli.formatting import ago, one_line
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.screen import Column, Screen

approvals = typer.Typer(rich_markup_mode=None, add_completion=False)


class Decision(StrEnum):
    APPROVE = "approve"
    DENY = "deny"


@approvals.callback(invoke_without_command=True)
def list_approvals(
    context: typer.Context,
    answered_too: Annotated[bool, typer.Option("--all", help="Answered ones too.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    screen = Screen(as_json=as_json)
    found = connect(project).approvals(None if answered_too else "pending")
    if as_json:
        screen.json(found)
    elif not found:
        screen.say("Nobody asks for anything.")
    else:
        columns = [Column(title=title) for title in ("approval", "status", "session", "asked")]
        rows = [
            [one["id"], one["status"], one["session_id"], (ago(one["created_at"]), "dim"), one["question"]]
            for one in found
        ]
        screen.table([*columns, Column(title="question", shrinks=True)], rows)
        screen.next("Answer one: labwright approvals answer APPROVAL approve|deny")


@approvals.command("answer")
def answer(
    approval: Annotated[str, typer.Argument(metavar="APPROVAL", help="Its id.")],
    decision: Annotated[Decision, typer.Argument(metavar="approve|deny", help="An answer is final.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Told to the agent.")] = "",
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Answer; the conversation goes on with it."""
    screen = Screen(as_json=as_json)
    given = connect(project).answer_approval(approval, approved=decision is Decision.APPROVE, reason=reason)
    if as_json:
        screen.json(given)
    else:
        screen.say((given["id"], "bold"), f"  {given['status']}  ({one_line(given['question'])})")
