"""Run, show and change sweeps."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from labwright.cli.command import INTERRUPTED, current_folder, group, with_client
from labwright.cli.formatting import parse_budget, parse_pair, parse_value, plural
from labwright.cli.metrics.export import ExportFormat
from labwright.cli.references import SweepRef, sweep_id_of
from labwright.cli.runs.submit import caller_environment
from labwright.cli.screen import Screen, note, warn
from labwright.cli.sweeps.file import read_sweep_file
from labwright.cli.sweeps.view import COLUMNS, follow_sweep, show_sweep
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid

Json = dict[str, Any]


class Direction(StrEnum):
    MIN = "min"
    MAX = "max"


class _Commands(TyperGroup):
    """`labwright sweep FILE.yaml` is short for `labwright sweep run FILE.yaml`."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path, "FILE.yaml [OPTIONS]")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and args[0].endswith((".yaml", ".yml", ".json")):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


sweep = group(_Commands, no_args_is_help=True)
GpuHours = Annotated[float | None, typer.Option(min=0, metavar="H", help="New budget in GPU-hours.")]
BudgetRuns = Annotated[int | None, typer.Option("--runs", min=1, metavar="N", help="New budget in runs.")]
WallTime = Annotated[str | None, typer.Option(metavar="TIME", help="New budget in running time, e.g. 2h.")]
Parallel = Annotated[int | None, typer.Option(min=1, metavar="N", help="Max parallel runs.")]


@sweep.callback()
def _sweep() -> None:
    pass


@sweep.command("run")
@with_client
def run(
    screen: Screen,
    client: LabClient,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A sweep in YAML.")],
    start: Annotated[bool | None, typer.Option("--start/--no-start", help="Start it now. Default: yes.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Show progress until it ends. Exit code 1 if a run failed.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name. Default: from the file, or the file's name.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Run it even if another sweep already has all of its runs.")
    ] = False,
) -> None:
    """Run a sweep from a file. Short form: `sweep FILE.yaml`."""
    read = read_sweep_file(file)
    spec: Json = {
        "name": file.stem,
        "workdir": str(current_folder()),
        "auto_start": True,
        "caller_env": caller_environment(os.environ),
        **read.content,
        **({"name": name} if name else {}),
        **({"auto_start": start} if start is not None else {}),
        **({"again": True} if again else {}),
    }
    try:
        with screen.working("creating the sweep"):
            created = client.create_sweep(spec)
    except Invalid as error:
        raise read.located(error) from error
    for text in created["warnings"]:
        warn(text)
    if wait and created["status"] != "draft":
        _wait(screen, client, created)
        return
    total, limit = created["progress"]["total"], created["max_runs"]
    size = plural(total, "run") if total or not limit else f"up to {plural(limit, 'run')}"
    text = f"{created['name']}  {created['method']}, {size}, {created['status']}"
    screen.result(created, lambda _: screen.item(created["id"], text))
    start_it = f"Start it: labwright sweep start {created['id']} · " if created["status"] == "draft" else ""
    screen.suggest(f"{start_it}Progress: labwright sweep show {created['id']}")


def _wait(screen: Screen, client: LabClient, created: Json) -> None:
    """Show progress until the sweep ends. Ctrl-C does not stop the sweep."""
    try:
        ended = follow_sweep(screen, client, created["id"])
    except KeyboardInterrupt:
        note(f"\n{created['id']} continues. Show it: labwright sweep show {created['id']}")
        raise typer.Exit(INTERRUPTED) from None
    screen.result(ended, lambda _: show_sweep(screen, client, ended))
    progress = ended["progress"]
    raise typer.Exit(0 if ended["status"] == "completed" and not progress["failed"] + progress["lost"] else 1)


@sweep.command("new")
@with_client
def new(
    screen: Screen,
    client: LabClient,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The sweep's name.")],
    goal: Annotated[str, typer.Option(metavar="TEXT", help="The question that its runs answer.")] = "",
    parallel: Parallel = None,
    metric: Annotated[str | None, typer.Option(metavar="KEY", help="The metric to compare its runs by.")] = None,
    maximize: Annotated[bool, typer.Option("--maximize", help="Maximize the metric. Default: minimize.")] = False,
) -> None:
    """Create an empty sweep, for `labwright run --sweep NAME`."""
    compared = {"key": metric, "goal": "max" if maximize else "min"} if metric else None
    created = client.create_wild_sweep({"name": name, "goal": goal, "parallel": parallel, "metric": compared})
    screen.result(created, lambda _: screen.item(created["id"], created["name"]))
    screen.suggest(f"Next: labwright run --sweep {created['id']} -- python train.py --lr 0.1")


@sweep.command("show")
@with_client
def show(
    screen: Screen,
    client: LabClient,
    reference: SweepRef,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Another metric. Default: the sweep's own.")] = None,
    goal: Annotated[Direction | None, typer.Option(help="Minimize or maximize the metric.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="List at most N configurations.")] = 10,
    form: Annotated[
        ExportFormat | None, typer.Option("--export", help="Print the full table in this format instead.")
    ] = None,
) -> None:
    """Show progress, best configurations and importance.

    Configurations are ranked by their mean over seeds. Importance says how much each parameter matters.
    """
    sweep_id = sweep_id_of(client, reference)
    if form is not None:
        for line in client.export_sweep(sweep_id, form, key, goal):
            screen.write(line.decode())
        return
    show_sweep(screen, client, client.sweep(sweep_id), key=key, goal=goal, limit=limit)


@with_client
def sweeps(screen: Screen, client: LabClient) -> None:
    screen.listing(
        client.sweeps(),
        COLUMNS,
        empty="No sweeps yet. Run one: labwright sweep FILE.yaml",
        then="Details: labwright sweep show SWEEP · Its runs: labwright ps --sweep SWEEP",
    )


sweep.command("list", help="List sweeps, newest first.")(sweeps)


def _change(screen: Screen, client: LabClient, reference: str, verb: str, body: Json | None = None) -> None:
    changed = client.change_sweep(sweep_id_of(client, reference), verb, body)
    more = f"  {plural(changed['added'], 'run')} added" if "added" in changed else ""
    more += f", {changed['already']} already exist" if changed.get("already") else ""
    text = f"{changed['name']}  {changed['status']}{more}"
    screen.result(changed, lambda _: screen.item(changed["id"], text))


@sweep.command("start")
@with_client
def start(screen: Screen, client: LabClient, reference: SweepRef) -> None:
    """Start a sweep that was created with --no-start."""
    _change(screen, client, reference, "start")


@sweep.command("stop")
@with_client
def stop(screen: Screen, client: LabClient, reference: SweepRef) -> None:
    """Stop a sweep and all its runs."""
    _change(screen, client, reference, "stop")


@sweep.command("pause")
@with_client
def pause(screen: Screen, client: LabClient, reference: SweepRef) -> None:
    """Pause a sweep. Active runs continue."""
    _change(screen, client, reference, "pause")


@sweep.command("resume")
@with_client
def resume(
    screen: Screen,
    client: LabClient,
    reference: SweepRef,
    gpu_hours: GpuHours = None,
    runs: BudgetRuns = None,
    wall_time: WallTime = None,
) -> None:
    """Resume a paused sweep, optionally with a new budget."""
    _change(screen, client, reference, "resume", {"budget": parse_budget(gpu_hours, runs, wall_time)})


@sweep.command("retry-failed")
@with_client
def retry_failed(screen: Screen, client: LabClient, reference: SweepRef) -> None:
    """Rerun only the failed and lost runs."""
    _change(screen, client, reference, "retry-failed")


@sweep.command("extend")
@with_client
def extend(
    screen: Screen,
    client: LabClient,
    reference: SweepRef,
    add: Annotated[
        list[str] | None, typer.Option(metavar="NAME=V,V", help="More values of a parameter. Can be repeated.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, metavar="N", help="Total number of seeds.")] = None,
    max_runs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Total number of runs.")] = None,
    parallel: Parallel = None,
    gpu_hours: GpuHours = None,
    runs: BudgetRuns = None,
    wall_time: WallTime = None,
) -> None:
    """Add configurations, seeds or budget. Nothing that is done runs again."""
    pairs = (parse_pair(pair, "--add") for pair in add or [])
    body = {
        "parameters": {name: [parse_value(value) for value in values.split(",")] for name, values in pairs},
        "seeds": seeds,
        "max_runs": max_runs,
        "parallel": parallel,
        "budget": parse_budget(gpu_hours, runs, wall_time),
    }
    _change(screen, client, reference, "extend", body)
