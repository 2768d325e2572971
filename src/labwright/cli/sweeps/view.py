"""One sweep on the screen: how far it is, what is best, what mattered, and a picture of the way there."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from labwright.cli.formatting import ago, number
from labwright.cli.metrics.plot import Curve
from labwright.cli.metrics.show import print_lines
from labwright.cli.screen import Column, Screen
from labwright.cli.sweeps.progress import counts_of, ended_of
from labwright.client.lab import LabClient
from labwright.domain.command_line import as_text

Json = dict[str, Any]
_STYLES = {"running": "blue", "completed": "green", "paused": "amber", "stopped": "grey", "draft": "grey"}
_BAR = 24
_ROWS = 8


class Goal(StrEnum):
    MIN = "min"
    MAX = "max"


def show_sweep(
    screen: Screen, client: LabClient, sweep: Json, *, key: str | None, goal: str | None, limit: int
) -> None:
    has_metric = key is not None or sweep["metric"] is not None
    results = client.sweep_results(sweep["id"], key, goal, limit) if has_metric else None
    if screen.as_json:
        screen.json({**sweep, "results": results})
        return
    _facts(screen, sweep)
    if results is None:
        screen.next(f"What its runs found: labwright sweep show {sweep['id']} --key METRIC --goal min")
        return
    _table(screen, results)
    _picture(screen, results)
    _importance(screen, results["importance"])
    screen.heading("Verdict")
    screen.prose(results["verdict"]["text"])
    screen.next(f"All of it: labwright sweep show {sweep['id']} --export csv")


def _facts(screen: Screen, sweep: Json) -> None:
    counts = counts_of(sweep) or "no runs yet"
    budget = ", ".join(f"{value:g} {name}" for name, value in sweep["budget"].items())
    screen.facts(
        [
            ("sweep", (sweep["id"], "bold")),
            ("name", sweep["name"]),
            ("goal", sweep["goal"]),
            ("method", sweep["method"]),
            ("status", (sweep["status"], _STYLES[sweep["status"]])),
            ("why", sweep["status_reason"]),
            ("runs", f"{_bar(*ended_of(sweep))}  {counts}"),
            ("seeds", ", ".join(map(str, sweep["seeds"]))),
            ("budget", budget),
            ("created", ago(sweep["created_at"])),
        ]
    )


def _bar(done: int, total: int) -> str:
    filled = round(_BAR * done / total) if total else 0
    return f"{'█' * filled}{'░' * (_BAR - filled)} {done}/{total}"


def _table(screen: Screen, results: Json) -> None:
    found = results["configurations"]
    names = list(dict.fromkeys(name for configuration in found for name in configuration["params"]))
    metric = results["metric"]
    screen.heading(f"Best by mean {metric['key']} ({metric['goal']})")
    columns = [
        Column(title="#", right=True),
        *(Column(title=name, right=True, shrinks=True) for name in names),
        Column(title="mean", right=True),
        Column(title="± std", right=True),
        Column(title="n", right=True),
        Column(title="run"),
    ]
    screen.table(columns, [_row(configuration, names) for configuration in found])
    if results["total"] > len(found):
        screen.say((f"{len(found)} of {results['total']} configurations", "dim"))


def _row(configuration: Json, names: list[str]) -> list[str]:
    params = configuration["params"]
    return [
        "" if configuration["trial"] is None else str(configuration["trial"]),
        *(_value(params.get(name)) for name in names),
        "" if configuration["mean"] is None else number(configuration["mean"]),
        "" if configuration["std"] is None else number(configuration["std"]),
        str(configuration["n"]),
        configuration["run_ids"][0],
    ]


def _value(value: Any) -> str:
    return "" if value is None else number(value) if isinstance(value, float) else as_text(value)


def _picture(screen: Screen, results: Json) -> None:
    """A staircase: the best stays what it is until a better one comes."""
    curve = results["best_so_far"]
    if len(curve) < 2:
        return
    xs: list[float] = []
    ys: list[float] = []
    for count, best in curve:
        if ys:
            xs.append(count)
            ys.append(ys[-1])
        xs.append(count)
        ys.append(best)
    screen.heading(f"Best {results['metric']['key']} so far, by configurations done")
    print_lines(screen, [Curve(xs=xs, ys=ys)], _ROWS, log=False)


def _importance(screen: Screen, found: Json) -> None:
    screen.heading("What mattered")
    if found["note"]:
        screen.say((found["note"], "dim"))
        return
    room = max((len(name) for name in found["parameters"]), default=0)
    for name, share in found["parameters"].items():
        screen.say(f"{name:<{room}}  ", ("█" * round(share * _BAR) or "▏", "blue"), f" {share:.0%}")
    screen.say((found["method"], "dim"))
