"""Conversations, what agents ask and suggest, and what is remembered."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from labwright.cli.chat.view import ChatView
from labwright.cli.command import group, with_client
from labwright.cli.formatting import ago, one_line, plural
from labwright.cli.references import SessionRef, session_id_of
from labwright.cli.screen import Column, Screen
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid

Json = dict[str, Any]
SuggestionId = Annotated[str, typer.Argument(metavar="SUGGESTION", help="The suggestion's id.")]
MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="The memory's id.")]
sessions, approvals, memories = group(), group(), group()


class Decision(StrEnum):
    APPROVE = "approve"
    DENY = "deny"


_SESSION_COLUMNS = [
    Column("session", "id"),
    Column("status", "status"),
    Column("mode", "mode"),
    Column("turns", lambda session: str(session["turn"]), right=True),
    Column("last", lambda session: ago(session["updated_at"]), style="dim"),
    Column(
        "waits for", lambda session: plural(len(session["waits"]), "event") if session["waits"] else "", optional=True
    ),
    Column("title", "title", shrinks=True),
]
_SUGGESTION_COLUMNS = [
    Column("suggestion", "id"),
    Column("status", "status"),
    Column("template", lambda suggestion: "yes" if suggestion["template"] else ""),
    Column("text", "text", shrinks=True),
]
_APPROVAL_COLUMNS = [
    Column("approval", "id"),
    Column("status", "status"),
    Column("session", "session_id"),
    Column("asked", lambda approval: ago(approval["created_at"]), style="dim"),
    Column("question", "question", shrinks=True),
]
_MEMORY_COLUMNS = [
    Column("memory", "id"),
    Column("state", lambda memory: ("accepted", "green") if memory["accepted"] else ("proposed", "yellow")),
    Column("by", "created_by"),
    Column("when", lambda memory: ago(memory["updated_at"]), style="dim"),
    Column("text", "text", shrinks=True),
]


@sessions.callback(invoke_without_command=True)
@with_client
def list_sessions(screen: Screen, client: LabClient) -> None:
    screen.listing(
        client.sessions(),
        _SESSION_COLUMNS,
        empty="No conversations yet. Start one: labwright chat",
        then="Continue one: labwright chat --session SESSION",
    )


@sessions.command("show")
@with_client
def show(screen: Screen, client: LabClient, session: SessionRef) -> None:
    """Show a conversation from the start."""
    view = ChatView(screen)
    for piece in client.pieces(session_id_of(client, session), 0):
        view.replay(piece)


@sessions.command("stop")
@with_client
def stop(screen: Screen, client: LabClient, session: SessionRef) -> None:
    """Stop the current turn, and no longer wait for events."""
    stopped = client.stop_session(session_id_of(client, session))
    screen.result(stopped, lambda _: screen.item(stopped["id"], "stopped"))


@sessions.command("delete")
@with_client
def delete(screen: Screen, client: LabClient, session: SessionRef) -> None:
    """Delete a conversation. Runs and sweeps that it started are kept."""
    session_id = session_id_of(client, session)
    client.delete_session(session_id)
    screen.result({"deleted": session_id}, lambda _: screen.item(session_id, "deleted"))


@sessions.command("suggestions")
@with_client
def list_suggestions(
    screen: Screen,
    client: LabClient,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only suggestions of this conversation.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="List accepted and dismissed suggestions too.")] = False,
) -> None:
    """List suggestions that assistants made after their tasks."""
    session_id = session_id_of(client, session) if session else None
    screen.listing(
        client.suggestions(session_id, None if everything else "pending"),
        _SUGGESTION_COLUMNS,
        empty="No open suggestions.",
        then="Accept one: labwright sessions accept SUGGESTION",
    )


@sessions.command("accept")
@with_client
def accept_suggestion(
    screen: Screen,
    client: LabClient,
    suggestion: SuggestionId,
    skill: Annotated[
        str | None, typer.Option("--skill", metavar="NAME", help="Add it to this skill of the project.")
    ] = None,
    template: Annotated[
        str | None, typer.Option("--template", metavar="FILE", help="Save its template as templates/FILE.")
    ] = None,
) -> None:
    """Add a suggestion to a skill, which conversations read, or save its template as a file."""
    if skill and template:
        raise Invalid("--skill and --template exclude each other.", hint="Use one of them.")
    accepted = client.accept_suggestion(suggestion, "template" if template else "skill", template or skill)
    screen.result(accepted, lambda _: screen.item(accepted["id"], f"accepted into {accepted['accepted_into']}"))


@sessions.command("dismiss")
@with_client
def dismiss(screen: Screen, client: LabClient, suggestion: SuggestionId) -> None:
    """Dismiss a suggestion."""
    dismissed = client.dismiss_suggestion(suggestion)
    screen.result(dismissed, lambda _: screen.item(dismissed["id"], "dismissed"))


@approvals.callback(invoke_without_command=True)
@with_client
def list_approvals(
    screen: Screen,
    client: LabClient,
    everything: Annotated[bool, typer.Option("--all", help="List answered approvals too.")] = False,
) -> None:
    screen.listing(
        client.approvals(None if everything else "pending"),
        _APPROVAL_COLUMNS,
        empty="No approvals." if everything else "No open approvals.",
        then="Answer one: labwright approvals answer APPROVAL approve|deny",
    )


@approvals.command("answer")
@with_client
def answer(
    screen: Screen,
    client: LabClient,
    approval: Annotated[str, typer.Argument(metavar="APPROVAL", help="The approval's id.")],
    decision: Annotated[Decision, typer.Argument(metavar="approve|deny", help="The answer. It is final.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="A message to the agent.")] = "",
) -> None:
    """Approve or deny. The conversation then continues."""
    given = client.answer_approval(approval, approved=decision is Decision.APPROVE, reason=reason)
    screen.result(given, lambda _: screen.item(given["id"], f"{given['status']}  ({one_line(given['question'])})"))


@memories.callback(invoke_without_command=True)
@with_client
def list_memories(screen: Screen, client: LabClient) -> None:
    screen.listing(
        client.memories(),
        _MEMORY_COLUMNS,
        empty="No memories.",
        then="Accept a proposal: labwright memories accept MEMORY",
    )


@memories.command("add")
@with_client
def add_memory(
    screen: Screen,
    client: LabClient,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="One fact, in a sentence.")],
) -> None:
    """Add a fact that every conversation knows."""
    _show_memory(screen, client.add_memory(text))


@memories.command("accept")
@with_client
def accept_memory(screen: Screen, client: LabClient, memory: MemoryId) -> None:
    """Accept a fact that an agent proposed. Every conversation then knows it."""
    _show_memory(screen, client.accept_memory(memory))


@memories.command("delete")
@with_client
def delete_memory(screen: Screen, client: LabClient, memory: MemoryId) -> None:
    """Delete a memory."""
    client.delete_memory(memory)
    _show_memory(screen, {"id": memory, "text": "deleted"})


def _show_memory(screen: Screen, memory: Json) -> None:
    screen.result(memory, lambda _: screen.item(memory["id"], memory["text"]))
