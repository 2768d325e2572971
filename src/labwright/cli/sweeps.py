"""Sweeps: list them, make one, find one by name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.options import AsJson, Project, connect
from labwright.cli.screen import Cell, Column, Screen
from labwright.cli.words import ago
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.ids import SWEEP, is_id

Json = dict[str, Any]
_SHOWN = ("running", "waiting", "queued", "finished", "failed", "stopped", "lost")

sweep = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@sweep.callback()
def _sweep() -> None:
    pass


@sweep.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    goal: Annotated[str, typer.Option(metavar="TEXT", help="The question its runs are to answer.")] = "",
    parallel: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most so many of its runs at a time.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Make an empty sweep; runs join it with `labwright run --sweep NAME`."""
    screen = Screen(as_json=as_json)
    made = connect(project).create_wild_sweep({"name": name, "goal": goal, "parallel": parallel})
    if as_json:
        screen.json(made)
        return
    screen.say((made["id"], "bold"), f"  {made['name']}")
    screen.next(f"Next: labwright run --sweep {made['id']} -- python train.py --lr 0.1")


def sweeps(project: Project = None, as_json: AsJson = False) -> None:
    screen = Screen(as_json=as_json)
    found = connect(project).sweeps()
    if as_json:
        screen.json(found)
    elif not found:
        screen.say('No sweeps yet. Make one: labwright sweep new NAME --goal "Which learning rate is best?"')
    else:
        columns = [
            Column(title="sweep"),
            Column(title="name", shrinks=True),
            Column(title="status"),
            Column(title="runs", shrinks=True),
            Column(title="created", right=True),
            Column(title="goal", shrinks=True),
        ]
        screen.table(columns, [_row(sweep) for sweep in found])
        screen.next("Its runs: labwright ps --sweep SWEEP")


def _row(sweep: Json) -> list[Cell]:
    progress = sweep["progress"]
    parts = [f"{progress[status]} {status}" for status in _SHOWN if progress.get(status)]
    created = ago(sweep["created_at"])
    return [sweep["id"], sweep["name"], sweep["status"], ", ".join(parts) or "none", (created, "dim"), sweep["goal"]]


def sweep_id_of(client: LabClient, reference: str) -> str:
    """By id, the beginning of one, or name; of several by one name the newest."""
    if is_id(reference, SWEEP):
        return reference
    found = client.sweeps()
    prefix = reference if reference.startswith(f"{SWEEP}-") else f"{SWEEP}-{reference}"
    begins = [sweep["id"] for sweep in found if sweep["id"].startswith(prefix)]
    named = [sweep["id"] for sweep in found if sweep["name"] == reference]
    if named or len(begins) == 1:
        return str((named or begins)[0])
    if begins:
        raise Invalid(f"{reference!r} is the beginning of more than one sweep's id.", hint="Type more of it.")
    raise NotFound(f"There is no sweep {reference}.", hint="List them with: labwright sweeps")
