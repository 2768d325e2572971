"""Wild loops: start one from a goal, look at it, steer it, read its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labwright.cli.formatting import budget_of
from labwright.cli.goal_group import NEW, GoalGroup
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.references import wild_id_of
from labwright.cli.screen import Screen, note, warn
from labwright.cli.wild_view import follow_wild, list_wilds, show_wild
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict

Json = dict[str, Any]
_INTERRUPTED = 130
wild = typer.Typer(cls=GoalGroup, rich_markup_mode=None, add_completion=False, no_args_is_help=True)
WildRef = Annotated[str, typer.Argument(metavar="LOOP", help="A loop's id, its beginning, or `last`.")]
GpuHours = Annotated[float | None, typer.Option("--budget-gpu-hours", min=0, metavar="H", help="At most these.")]
MaxRuns = Annotated[int | None, typer.Option("--max-runs", min=1, metavar="N", help="At most so many. Default: 40.")]
Protect = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="A file or folder of evaluation that must not change; repeat for more."),
]
WallTime = Annotated[str | None, typer.Option("--wall-time", metavar="TIME", help="At most so long, e.g. 2h.")]


@wild.callback(invoke_without_command=False)
def _wild() -> None:
    """\b
    labwright wild "reach val_acc 0.9 by tuning lr" --budget-gpu-hours 8 --max-runs 40
    labwright wild show LOOP
    """


@wild.command(NEW)
def new(
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="What to reach, by which metric; and what to vary.")],
    gpu_hours: GpuHours = None,
    max_runs: MaxRuns = None,
    wall_time: WallTime = None,
    protect: Protect = None,
    script: Annotated[str | None, typer.Option(metavar="FILE", help="The script, if the goal names none.")] = None,
    metric: Annotated[str | None, typer.Option(metavar="KEY", help="The metric, if the goal names none.")] = None,
    maximize: Annotated[bool, typer.Option("--maximize", help="With --metric: it is to be large, not small.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, metavar="N", help="Of what counts. Default: 3.")] = None,
    gpus: Annotated[int | None, typer.Option(min=0, metavar="N", help="GPUs of each run.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show how it goes until it ends or asks.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Begin a loop. The word `new` may be left out.

    Baseline first, then one idea after another, until the goal is met with evidence, the budget ends or nothing
    improves beyond noise. With --wait the exit code is 0 if it completed.
    """
    screen, client = Screen(as_json=as_json), connect(project)
    wanted: Json = {
        "goal": goal,
        "budget": budget_of(gpu_hours, max_runs, wall_time),
        "protect": protect or [],
        "script": script,
        "metric": {"key": metric, "goal": "max" if maximize else "min"} if metric else None,
        "seeds": seeds,
        "gpus": gpus,
    }
    with screen.working("reading the goal and the project"):
        made = client.start_wild(wanted)
    for text in made["notes"]:
        warn(text)
    if wait:
        made = _followed(screen, client, made["id"])
    show_wild(screen, made)
    raise typer.Exit(1 if wait and made["status"] != "completed" else 0)


def _followed(screen: Screen, client: LabClient, wild_id: str) -> Json:
    """Leaving with Ctrl-C leaves the loop alone."""
    try:
        return follow_wild(screen, client, wild_id)
    except KeyboardInterrupt:
        note(f"\n{wild_id} goes on. Look at it: labwright wild show {wild_id}")
        raise typer.Exit(_INTERRUPTED) from None


@wild.command("list")
def list_all(project: Project = None, as_json: AsJson = False) -> None:
    """List loops, newest first."""
    list_wilds(Screen(as_json=as_json), connect(project).wilds())


@wild.command("show")
def show(reference: WildRef = "last", project: Project = None, as_json: AsJson = False) -> None:
    """What was tried, what came of it, and what is left of the budget."""
    client = connect(project)
    show_wild(Screen(as_json=as_json), client.wild(wild_id_of(client, reference)))


def _verb(reference: str, verb: str, project: Path | None, as_json: bool, body: Json | None = None) -> None:
    screen, client = Screen(as_json=as_json), connect(project)
    done = client.change_wild(wild_id_of(client, reference), verb, body)
    if as_json:
        screen.json(done)
    else:
        screen.say((done["id"], "bold"), f"  {done['status']}  {done['status_reason']}".rstrip())


@wild.command("steer")
def steer(
    reference: WildRef,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the next proposal is to take into account.")],
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Give it a direction. Rules take flags and values from the words; a model reads them whole."""
    _verb(reference, "steer", project, as_json, {"text": text})


@wild.command("pause")
def pause(reference: WildRef, project: Project = None, as_json: AsJson = False) -> None:
    """Begin nothing new; what runs goes on."""
    _verb(reference, "pause", project, as_json)


@wild.command("resume")
def resume(
    reference: WildRef,
    gpu_hours: GpuHours = None,
    max_runs: MaxRuns = None,
    wall_time: WallTime = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Go on after a pause, with another budget (in all) if one is given."""
    budget = budget_of(gpu_hours, max_runs, wall_time)
    _verb(reference, "resume", project, as_json, {"budget": budget} if budget else None)


@wild.command("stop")
def stop(reference: WildRef, project: Project = None, as_json: AsJson = False) -> None:
    """End it with all of its runs; the report says what was found until now."""
    _verb(reference, "stop", project, as_json)


@wild.command("report")
def report(reference: WildRef = "last", project: Project = None, as_json: AsJson = False) -> None:
    """What was tried, what failed and what is established, in Markdown."""
    screen, client = Screen(as_json=as_json), connect(project)
    found = client.wild(wild_id_of(client, reference))
    if found["report"] is None:
        hint = f"Look at it: labwright wild show {found['id']}; its report is written when it ends or its budget does."
        raise Conflict(f"{found['id']} is {found['status']}.", hint=hint)
    if as_json:
        screen.json({"id": found["id"], "report": found["report"]})
    else:
        screen.output(found["report"])
