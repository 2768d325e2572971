"""Conversations: list them, show one, stop one, delete one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.chat_screen import ChatScreen, waits_in_words
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.screen import Cell, Column, Screen
from labwright.cli.words import ago

sessions = typer.Typer(rich_markup_mode=None, add_completion=False)
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]


@sessions.callback(invoke_without_command=True)
def list_sessions(context: typer.Context, project: Project = None, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is not None:
        return
    screen = Screen(as_json=as_json)
    found = connect(project).sessions()
    if as_json:
        screen.json(found)
    elif not found:
        screen.say("No conversations yet. Begin one: labwright chat")
    else:
        titles = ("session", "status", "mode", "turns", "last", "", "title")
        columns = [Column(title=title, right=title == "turns", shrinks=title == "title") for title in titles]
        screen.table(columns, [_row(one) for one in found])
        screen.next("Go on with one: labwright chat --session SESSION")


def _row(session: dict[str, Any]) -> list[Cell]:
    facts = [session[name] for name in ("id", "status", "mode")]
    return [
        *facts,
        str(session["turn"]),
        (ago(session["updated_at"]), "dim"),
        waits_in_words(session),
        session["title"],
    ]


@sessions.command("show")
def show(session: SessionId, project: Project = None, as_json: AsJson = False) -> None:
    """What was said and done in one, from the beginning."""
    screen, client = Screen(as_json=as_json), connect(project)
    shown = ChatScreen(screen)
    client.session(session)
    for piece in client.pieces(session, 0):
        shown.show_again(piece)


@sessions.command("stop")
def stop(session: SessionId, project: Project = None, as_json: AsJson = False) -> None:
    """End its turn at once; it no longer waits for anything either."""
    screen = Screen(as_json=as_json)
    stopped = connect(project).stop_session(session)
    if as_json:
        screen.json(stopped)
    else:
        screen.say((stopped["id"], "bold"), "  stopped")


@sessions.command("delete")
def delete(session: SessionId, project: Project = None, as_json: AsJson = False) -> None:
    """Delete all that was said in it; what it started stays."""
    connect(project).delete_session(session)
    screen = Screen(as_json=as_json)
    if as_json:
        screen.json({"deleted": session})
    else:
        screen.say((session, "bold"), "  deleted")
