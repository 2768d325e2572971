"""What every conversation is told."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.formatting import ago
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.screen import Cell, Column, Screen

memories = typer.Typer(rich_markup_mode=None, add_completion=False)
MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="Its id.")]


@memories.callback(invoke_without_command=True)
def list_memories(context: typer.Context, project: Project = None, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is not None:
        return
    screen = Screen(as_json=as_json)
    found = connect(project).memories()
    if as_json:
        screen.json(found)
    elif not found:
        screen.say("Nothing is remembered.")
    else:
        columns = [Column(title=title) for title in ("memory", "state", "by", "when")]
        rows = [_row(one) for one in found]
        screen.table([*columns, Column(title="text", shrinks=True)], rows)
        screen.next("Accept a proposal: labwright memories accept MEMORY")


def _row(memory: dict[str, Any]) -> list[Cell]:
    state = ("accepted", "green") if memory["accepted"] else ("proposed", "amber")
    return [memory["id"], state, memory["created_by"], (ago(memory["updated_at"]), "dim"), memory["text"]]


@memories.command("add")
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="One fact, in a sentence.")],
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Have it told to every conversation."""
    _say(Screen(as_json=as_json), connect(project).add_memory(text))


@memories.command("accept")
def accept(memory: MemoryId, project: Project = None, as_json: AsJson = False) -> None:
    """Let other conversations be told what an agent proposed."""
    _say(Screen(as_json=as_json), connect(project).accept_memory(memory))


@memories.command("delete")
def delete(memory: MemoryId, project: Project = None, as_json: AsJson = False) -> None:
    """Forget it."""
    connect(project).delete_memory(memory)
    _say(Screen(as_json=as_json), {"id": memory, "text": "deleted"})


def _say(screen: Screen, memory: dict[str, Any]) -> None:
    if screen.as_json:
        screen.json(memory)
    else:
        screen.say((memory["id"], "bold"), f"  {memory['text']}")
