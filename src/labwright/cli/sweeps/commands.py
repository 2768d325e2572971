"""Sweeps: run one from a file, look at it, steer it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from labwright.cli.formatting import ago, budget_of, counted, number, parse_pair, parse_value
from labwright.cli.metrics.export import Form
from labwright.cli.options import AsJson, Project, connect, present_folder
from labwright.cli.runs.submit import caller_environment
from labwright.cli.screen import Cell, Column, Screen, note, warn
from labwright.cli.sweeps.file import read_sweep_file
from labwright.cli.sweeps.ids import SweepRef, sweep_id_of
from labwright.cli.sweeps.progress import counts_of, follow_sweep
from labwright.cli.sweeps.view import Goal, show_sweep
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid

Json = dict[str, Any]
_INTERRUPTED = 130


class _Commands(TyperGroup):
    """`labwright sweep FILE.yaml` is short for `labwright sweep run FILE.yaml`."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path, "FILE.yaml [OPTIONS]")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and args[0].endswith((".yaml", ".yml", ".json")):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


sweep = typer.Typer(cls=_Commands, rich_markup_mode=None, add_completion=False, no_args_is_help=True)
Wait = Annotated[bool, typer.Option("--wait", help="Show its progress until it ends; exit 1 if a run failed.")]


@sweep.callback()
def _sweep() -> None:
    pass


@sweep.command("run")
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A sweep in YAML.")],
    start: Annotated[bool | None, typer.Option("--start/--no-start", help="Begin at once. Default: yes.")] = None,
    wait: Wait = False,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Default: as in the file, or the file's.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also if another sweep has all of its runs already.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Run a sweep from a file, as `sweep FILE.yaml`. The `run` may be left out."""
    screen, read = Screen(as_json=as_json), read_sweep_file(file)
    client = connect(project)
    wanted: Json = {
        "name": file.stem,
        "workdir": str(present_folder()),
        "auto_start": True,
        "caller_env": caller_environment(os.environ),
        **read.content,
        **({"name": name} if name else {}),
        **({"auto_start": start} if start is not None else {}),
        **({"again": True} if again else {}),
    }
    try:
        with screen.working("making the sweep"):
            made = client.create_sweep(wanted)
    except Invalid as error:
        raise read.located(error) from error
    for text in made["warnings"]:
        warn(text)
    if wait and made["status"] != "draft":
        _wait(screen, client, made)
        return
    _present(screen, made)


def _present(screen: Screen, made: Json) -> None:
    if screen.as_json:
        screen.json(made)
        return
    total, most = made["progress"]["total"], made["max_runs"]
    size = counted(total, "run") if total or not most else f"up to {counted(most, 'run')}"
    screen.say((made["id"], "bold"), f"  {made['name']}  {made['method']}, {size}, {made['status']}")
    begin = f"begin: labwright sweep start {made['id']} · " if made["status"] == "draft" else ""
    screen.next(f"Next: {begin}labwright sweep show {made['id']}")


def _wait(screen: Screen, client: LabClient, made: Json) -> None:
    """Leaving with Ctrl-C leaves the sweep alone."""
    try:
        ended = follow_sweep(screen, client, made["id"])
    except KeyboardInterrupt:
        note(f"\n{made['id']} goes on. Look at it: labwright sweep show {made['id']}")
        raise typer.Exit(_INTERRUPTED) from None
    if screen.as_json:
        screen.json(ended)
    else:
        show_sweep(screen, client, ended, key=None, goal=None, limit=10)
    progress = ended["progress"]
    raise typer.Exit(0 if ended["status"] == "completed" and not progress["failed"] + progress["lost"] else 1)


@sweep.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    goal: Annotated[str, typer.Option(metavar="TEXT", help="The question its runs are to answer.")] = "",
    parallel: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most so many of its runs at a time.")
    ] = None,
    metric: Annotated[str | None, typer.Option(metavar="KEY", help="What its runs are compared by.")] = None,
    maximize: Annotated[bool, typer.Option("--maximize", help="The metric is to be large, not small.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Make an empty sweep, for `labwright run --sweep NAME`."""
    screen = Screen(as_json=as_json)
    compared = {"key": metric, "goal": "max" if maximize else "min"} if metric else None
    wanted = {"name": name, "goal": goal, "parallel": parallel, "metric": compared}
    made = connect(project).create_wild_sweep(wanted)
    if as_json:
        screen.json(made)
        return
    screen.say((made["id"], "bold"), f"  {made['name']}")
    screen.next(f"Next: labwright run --sweep {made['id']} -- python train.py --lr 0.1")


@sweep.command("show")
def show(
    reference: SweepRef,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Another metric than the sweep's own.")] = None,
    goal: Annotated[Goal | None, typer.Option(help="Whether it is to be small or large.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many configurations to list.")] = 10,
    form: Annotated[Form | None, typer.Option("--export", help="The whole table in this form instead.")] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """How far it is, what is best and what mattered.

    The best configurations are by mean over seeds; with a picture of the way there."""
    screen, client = Screen(as_json=as_json), connect(project)
    sweep_id = sweep_id_of(client, reference)
    if form is not None:
        for line in client.export_sweep(sweep_id, form, key, goal):
            screen.output(line.decode())
        return
    show_sweep(screen, client, client.sweep(sweep_id), key=key, goal=goal, limit=limit)


@sweep.command("list")
def list_all(project: Project = None, as_json: AsJson = False) -> None:
    """List sweeps, newest first."""
    sweeps(project, as_json)


def _verb(reference: str, verb: str, project: Path | None, as_json: bool, body: Json | None = None) -> None:
    screen, client = Screen(as_json=as_json), connect(project)
    done = client.change_sweep(sweep_id_of(client, reference), verb, body)
    if as_json:
        screen.json(done)
        return
    more = f"  {counted(done['added'], 'run')} added" if "added" in done else ""
    more += f", {done['already']} there already" if done.get("already") else ""
    screen.say((done["id"], "bold"), f"  {done['name']}  {done['status']}{more}")


@sweep.command("start")
def start(reference: SweepRef, project: Project = None, as_json: AsJson = False) -> None:
    """Begin one that was made with --no-start."""
    _verb(reference, "start", project, as_json)


@sweep.command("stop")
def stop(reference: SweepRef, project: Project = None, as_json: AsJson = False) -> None:
    """End it and all its runs."""
    _verb(reference, "stop", project, as_json)


@sweep.command("pause")
def pause(reference: SweepRef, project: Project = None, as_json: AsJson = False) -> None:
    """Begin nothing new; what runs goes on."""
    _verb(reference, "pause", project, as_json)


GpuHours = Annotated[float | None, typer.Option(min=0, metavar="H", help="The budget in GPU-hours from now on.")]
BudgetRuns = Annotated[int | None, typer.Option("--runs", min=1, metavar="N", help="The budget in runs from now on.")]
WallTime = Annotated[str | None, typer.Option(metavar="TIME", help="The budget in time at work, e.g. 2h.")]


@sweep.command("resume")
def resume(
    reference: SweepRef,
    gpu_hours: GpuHours = None,
    runs: BudgetRuns = None,
    wall_time: WallTime = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Go on after a pause, with another budget if one is given."""
    _verb(reference, "resume", project, as_json, {"budget": budget_of(gpu_hours, runs, wall_time)})


@sweep.command("retry-failed")
def retry_failed(reference: SweepRef, project: Project = None, as_json: AsJson = False) -> None:
    """Run again what failed or was lost, and only that."""
    _verb(reference, "retry-failed", project, as_json)


@sweep.command("extend")
def extend(
    reference: SweepRef,
    add: Annotated[
        list[str] | None, typer.Option(metavar="NAME=V,V", help="Further values of a parameter; repeat for more.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, metavar="N", help="So many seeds in all.")] = None,
    max_runs: Annotated[int | None, typer.Option(min=1, metavar="N", help="So many runs in all.")] = None,
    parallel: Annotated[int | None, typer.Option(min=1, metavar="N", help="So many of them at a time.")] = None,
    gpu_hours: GpuHours = None,
    runs: BudgetRuns = None,
    wall_time: WallTime = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Give it more to do, without repeating what is done."""
    pairs = (parse_pair(pair, "--add") for pair in add or [])
    body = {
        "parameters": {name: [parse_value(value) for value in values.split(",")] for name, values in pairs},
        "seeds": seeds,
        "max_runs": max_runs,
        "parallel": parallel,
        "budget": budget_of(gpu_hours, runs, wall_time),
    }
    _verb(reference, "extend", project, as_json, body)


def sweeps(project: Project = None, as_json: AsJson = False) -> None:
    screen = Screen(as_json=as_json)
    found = connect(project).sweeps()
    if as_json:
        screen.json(found)
    elif not found:
        screen.say("No sweeps yet. Run one: labwright sweep FILE.yaml")
    else:
        columns = [
            Column(title="sweep"),
            Column(title="name", shrinks=True),
            Column(title="method"),
            Column(title="status"),
            Column(title="runs", shrinks=True),
            Column(title="best", right=True),
            Column(title="created", right=True),
            Column(title="goal", shrinks=True),
        ]
        screen.table(columns, [_row(sweep) for sweep in found])
        screen.next("One of them: labwright sweep show SWEEP · its runs: labwright ps --sweep SWEEP")


def _row(sweep: Json) -> list[Cell]:
    created, best = ago(sweep["created_at"]), number(sweep["best"]["mean"]) if sweep["best"] else ""
    return [
        sweep["id"],
        sweep["name"],
        sweep["method"],
        sweep["status"],
        counts_of(sweep) or "none",
        best,
        (created, "dim"),
        sweep["goal"],
    ]
