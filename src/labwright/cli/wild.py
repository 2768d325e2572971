"""Wild loops: start one from a goal, follow it, steer it, read its report."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.command import INTERRUPTED, NEW, GoalGroup, group, with_client
from labwright.cli.formatting import ago, duration, number, one_line, parse_budget
from labwright.cli.references import WildRef, wild_id_of
from labwright.cli.screen import Cell, Column, Screen, note, warn
from labwright.client.follow import Frame, watch
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict
from labwright.domain.event import EventType
from labwright.domain.wild import AT_WORK

Json = dict[str, Any]
_TYPES = f"{EventType.WILD_CHANGED},{EventType.WILD_ITERATION}"
_STYLES = {"keep": "green", "baseline": "blue", "stop": "yellow", "drop": "dim"}

wild = group(GoalGroup, no_args_is_help=True)
GpuHours = Annotated[float | None, typer.Option("--budget-gpu-hours", min=0, metavar="H", help="Limit of GPU-hours.")]
MaxRuns = Annotated[int | None, typer.Option("--max-runs", min=1, metavar="N", help="Limit of runs. Default: 40.")]
WallTime = Annotated[str | None, typer.Option("--wall-time", metavar="TIME", help="Limit of running time, e.g. 2h.")]


@wild.callback(invoke_without_command=False)
def _wild() -> None:
    """\b
    labwright wild "reach val_acc 0.9 by tuning lr" --budget-gpu-hours 8 --max-runs 40
    labwright wild show LOOP
    """


@wild.command(NEW)
@with_client
def new(
    screen: Screen,
    client: LabClient,
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="The target, its metric, and the parameters to vary.")],
    gpu_hours: GpuHours = None,
    max_runs: MaxRuns = None,
    wall_time: WallTime = None,
    protect: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="An evaluation file or folder that must not change. Can be repeated."),
    ] = None,
    script: Annotated[str | None, typer.Option(metavar="FILE", help="The script, if the goal names none.")] = None,
    metric: Annotated[str | None, typer.Option(metavar="KEY", help="The metric, if the goal names none.")] = None,
    maximize: Annotated[
        bool, typer.Option("--maximize", help="With --metric: maximize it. Default: minimize.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Seeds for baseline and best configurations. Default: 3.")
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=0, metavar="N", help="GPUs per run.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show each decision until it ends or asks.")] = False,
) -> None:
    """Start a loop. The word `new` can be left out.

    A loop measures a baseline, then tries one idea after another. It ends when the goal is reached with evidence,
    when the budget is used up, or when nothing improves beyond noise. With --wait, the exit code is 0 if it completed.
    """
    spec: Json = {
        "goal": goal,
        "budget": parse_budget(gpu_hours, max_runs, wall_time),
        "protect": protect or [],
        "script": script,
        "metric": {"key": metric, "goal": "max" if maximize else "min"} if metric else None,
        "seeds": seeds,
        "gpus": gpus,
    }
    with screen.working("reading the goal and the project"):
        loop = client.start_wild(spec)
    for text in loop["notes"]:
        warn(text)
    if wait:
        try:
            loop = _follow(screen, client, loop["id"])
        except KeyboardInterrupt:
            note(f"\n{loop['id']} continues. Show it: labwright wild show {loop['id']}")
            raise typer.Exit(INTERRUPTED) from None
    screen.result(loop, lambda _: _show(screen, loop))
    raise typer.Exit(1 if wait and loop["status"] != "completed" else 0)


def _follow(screen: Screen, client: LabClient, wild_id: str) -> Json:
    """Print each decision until the loop ends or waits for the user, and return the loop."""

    def concerns(frame: Frame) -> bool:
        return bool(frame.data["data"]["wild_id"] == wild_id)

    shown: set[int] = set()
    for loop, _ in watch(client, lambda: client.wild(wild_id), {"types": _TYPES}, note, concerns=concerns):
        for iteration in loop["iterations"]:
            if iteration["decision"] and iteration["number"] not in shown and not screen.as_json:
                shown.add(iteration["number"])
                verdict = iteration["decision"]["verdict"]
                text = one_line(f"{_change(iteration)}  {_result(iteration)}")
                screen.print(f"{iteration['number']:>3}  ", (verdict.ljust(10), _STYLES[verdict]), text)
        if loop["status"] not in AT_WORK:
            return loop
    raise AssertionError("the event stream does not end")


def _change(iteration: Json) -> str:
    return ", ".join(f"{name} {value}" for name, value in iteration["change"].items()) or "unchanged"


def _result(iteration: Json) -> str:
    return str(iteration["result"]["text"]).partition(": ")[0] if iteration["result"] else ""


def _verdict(iteration: Json) -> Cell:
    verdict = iteration["decision"]["verdict"] if iteration["decision"] else iteration["status"]
    return verdict, _STYLES.get(verdict, "")


def _reason(iteration: Json) -> str:
    return str(iteration["decision"]["reason"] if iteration["decision"] else iteration["hypothesis"])


_COLUMNS = [
    Column("loop", "id"),
    Column("status", "status"),
    Column("tries", lambda loop: str(len(loop["iterations"])), right=True),
    Column("runs", lambda loop: str(loop["used"]["runs"]), right=True),
    Column("best", lambda loop: number(loop["best"]["mean"]) if loop["best"] else ""),
    Column("created", lambda loop: ago(loop["created_at"]), style="dim"),
    Column("goal", "goal", shrinks=True),
]
_ITERATION_COLUMNS = [
    Column("#", lambda iteration: str(iteration["number"])),
    Column("verdict", _verdict),
    Column("change", _change, shrinks=True),
    Column("result", _result, shrinks=True),
    Column("why", _reason, shrinks=True),
]


@wild.command("list")
@with_client
def list_loops(screen: Screen, client: LabClient) -> None:
    """List loops, newest first."""
    screen.listing(
        client.wilds(),
        _COLUMNS,
        empty='No wild loops yet. Start one: labwright wild "reach val_acc 0.9 by tuning lr"',
        then="Details: labwright wild show LOOP · Report: labwright wild report LOOP",
    )


@wild.command("show")
@with_client
def show(screen: Screen, client: LabClient, reference: WildRef = "last") -> None:
    """Show what was tried, the results, and the budget."""
    loop = client.wild(wild_id_of(client, reference))
    screen.result(loop, lambda _: _show(screen, loop))


def _show(screen: Screen, loop: Json) -> None:
    used, budget = loop["used"], loop["budget"]
    limits = {name: f" of {number(limit)}" if limit is not None else "" for name, limit in budget.items()}
    spent = [
        f"{used['runs']}{limits['runs']} runs",
        f"{used['gpu_hours']:.3g}{limits['gpu_hours']} GPU-hours",
        f"{duration(used['wall_seconds'])} running",
        f"{used['tokens']:,} tokens" if used["tokens"] else "",
        f"${used['cost']:.2f}" if used["cost"] else "",  # 0 if free or without a known price
    ]
    screen.item(loop["id"], loop["status"])
    screen.facts(
        [
            ("goal", one_line(loop["goal"])),
            ("why", one_line(loop["status_reason"])),
            ("criterion", loop["criterion"]["text"]),
            ("script", f"{loop['script']}, searched by {loop['search']}: {', '.join(loop['parameters'])}"),
            ("baseline", _measured(loop["baseline"])),
            ("best", _measured(loop["best"])),
            ("used", ", ".join(filter(None, spent))),
            ("sweep", loop["sweep_id"]),
            ("protected", ", ".join(entry["path"] for entry in loop["protected"])),
        ]
    )
    if loop["iterations"]:
        screen.heading("Tries")
        screen.table(_ITERATION_COLUMNS, loop["iterations"])
    report = f"Report: labwright wild report {loop['id']} · " if loop["report"] else ""
    screen.suggest(
        f"{report}Steer: labwright wild steer {loop['id']} TEXT · Runs: labwright ps --sweep {loop['sweep_id']}"
    )


def _measured(found: Json | None) -> str:
    if found is None:
        return ""
    spread = "" if found["std"] is None else f" ± {found['std']:.2g}"
    params = ", ".join(f"{name} {value}" for name, value in found["params"].items())
    return f"{number(found['mean'])}{spread} (n {found['n']}), iteration {found['number']}: {params or 'unchanged'}"


def _change_loop(screen: Screen, client: LabClient, reference: str, verb: str, body: Json | None = None) -> None:
    done = client.change_wild(wild_id_of(client, reference), verb, body)
    screen.result(done, lambda _: screen.item(done["id"], f"{done['status']}  {done['status_reason']}".rstrip()))


@wild.command("steer")
@with_client
def steer(
    screen: Screen,
    client: LabClient,
    reference: WildRef,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A direction for the next proposals.")],
) -> None:
    """Give a loop a direction. Without a model, only flags and values in the text are used."""
    _change_loop(screen, client, reference, "steer", {"text": text})


@wild.command("pause")
@with_client
def pause(screen: Screen, client: LabClient, reference: WildRef) -> None:
    """Pause a loop. Active runs continue."""
    _change_loop(screen, client, reference, "pause")


@wild.command("resume")
@with_client
def resume(
    screen: Screen,
    client: LabClient,
    reference: WildRef,
    gpu_hours: GpuHours = None,
    max_runs: MaxRuns = None,
    wall_time: WallTime = None,
) -> None:
    """Resume a paused loop, optionally with a new total budget."""
    budget = parse_budget(gpu_hours, max_runs, wall_time)
    _change_loop(screen, client, reference, "resume", {"budget": budget} if budget else None)


@wild.command("stop")
@with_client
def stop(screen: Screen, client: LabClient, reference: WildRef) -> None:
    """Stop a loop and all its runs. The report shows the results so far."""
    _change_loop(screen, client, reference, "stop")


@wild.command("report")
@with_client
def report(screen: Screen, client: LabClient, reference: WildRef = "last") -> None:
    """Print the report in Markdown.

    It says what was tried, what failed and what is established.
    """
    found = client.wild(wild_id_of(client, reference))
    if found["report"] is None:
        hint = f"The report is written when the loop or its budget ends. Show it: labwright wild show {found['id']}"
        raise Conflict(f"{found['id']} is {found['status']} and has no report yet.", hint=hint)
    facts = {"id": found["id"], "report": found["report"]}
    screen.result(facts, lambda _: screen.write(found["report"]))
