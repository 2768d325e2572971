"""Conversations: list them, show one, stop one, delete one; and what they suggested."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.chat.view import ChatScreen, waits_in_words
from labwright.cli.formatting import ago, one_line
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.references import session_id_of
from labwright.cli.screen import Cell, Column, Screen
from labwright.domain.errors import Invalid

sessions = typer.Typer(rich_markup_mode=None, add_completion=False)
SuggestionId = Annotated[str, typer.Argument(metavar="SUGGESTION", help="Its id.")]
SessionRef = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, its beginning, or `last`: the one last spoken in.")
]


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
def show(session: SessionRef, project: Project = None, as_json: AsJson = False) -> None:
    """What was said and done in one, from the beginning."""
    screen, client = Screen(as_json=as_json), connect(project)
    shown = ChatScreen(screen)
    for piece in client.pieces(session_id_of(client, session), 0):
        shown.show_again(piece)


@sessions.command("stop")
def stop(session: SessionRef, project: Project = None, as_json: AsJson = False) -> None:
    """End its turn at once; it no longer waits for anything either."""
    screen, client = Screen(as_json=as_json), connect(project)
    stopped = client.stop_session(session_id_of(client, session))
    if as_json:
        screen.json(stopped)
    else:
        screen.say((stopped["id"], "bold"), "  stopped")


@sessions.command("delete")
def delete(session: SessionRef, project: Project = None, as_json: AsJson = False) -> None:
    """Delete all that was said in it; what it started stays."""
    screen, client = Screen(as_json=as_json), connect(project)
    session_id = session_id_of(client, session)
    client.delete_session(session_id)
    if as_json:
        screen.json({"deleted": session_id})
    else:
        screen.say((session_id, "bold"), "  deleted")


@sessions.command("suggestions")
def list_suggestions(
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only of this conversation.")] = None,
    answered_too: Annotated[bool, typer.Option("--all", help="Accepted and dismissed ones too.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """How the work could go better, as assistants saw it after their tasks."""
    screen = Screen(as_json=as_json)
    found = connect(project).suggestions(session, None if answered_too else "pending")
    if as_json:
        screen.json(found)
    elif not found:
        screen.say("No open suggestions.")
    else:
        columns = [Column(title="suggestion"), Column(title="status"), Column(title="template")]
        rows = [[one["id"], one["status"], "yes" if one["template"] else "", one_line(one["text"])] for one in found]
        screen.table([*columns, Column(title="what", shrinks=True)], rows)
        screen.next("Accept one: labwright sessions accept SUGGESTION")


@sessions.command("accept")
def accept(
    suggestion: SuggestionId,
    skill: Annotated[
        str | None, typer.Option("--skill", metavar="NAME", help="Into this skill of the project.")
    ] = None,
    template: Annotated[
        str | None, typer.Option("--template", metavar="FILE", help="Its template, into templates/FILE.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Accept a suggestion into a skill, which conversations are told; or its template into a file of the project."""
    if skill and template:
        raise Invalid("A suggestion is accepted into a skill or into a template.", hint="Give one of the two.")
    into = "template" if template else "skill"
    accepted = connect(project).accept_suggestion(suggestion, into, template or skill)
    _say_answered(accepted, f"accepted into {accepted['accepted_into']}", as_json)


@sessions.command("dismiss")
def dismiss(suggestion: SuggestionId, project: Project = None, as_json: AsJson = False) -> None:
    """Leave a suggestion at that."""
    _say_answered(connect(project).dismiss_suggestion(suggestion), "dismissed", as_json)


def _say_answered(suggestion: dict[str, Any], words: str, as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    if as_json:
        screen.json(suggestion)
    else:
        screen.say((suggestion["id"], "bold"), f"  {words}")
