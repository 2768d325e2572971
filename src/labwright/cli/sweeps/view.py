"""How a sweep is shown: a row in a table, in full, or while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labwright.cli.formatting import ago, number, plural
from labwright.cli.metrics.plot import PlotCurve
from labwright.cli.metrics.show import print_plot
from labwright.cli.screen import Column, Screen, note
from labwright.client.follow import Frame, watch
from labwright.client.lab import LabClient
from labwright.domain.command_line import as_text
from labwright.domain.event import EventType
from labwright.domain.run import TERMINAL

Json = dict[str, Any]
_STYLES = {
    "running": "blue",
    "completed": "green",
    "paused": "yellow",
    "stopped": "bright_black",
    "draft": "bright_black",
}
_STATUSES = ("running", "waiting", "launching", "queued", "ready", "finished", "failed", "stopped", "lost")
_TYPES = f"{EventType.RUN_STATUS},{EventType.SWEEP_STATUS},{EventType.SWEEP_UPDATED}"
_BAR = 24
_ROWS = 8


def run_counts(sweep: Json) -> str:
    """Return the number of runs by status, active ones first."""
    progress = sweep["progress"]
    return ", ".join(f"{progress[status]} {status}" for status in _STATUSES if progress[status])


COLUMNS = [
    Column("sweep", "id"),
    Column("name", "name", shrinks=True),
    Column("method", "method"),
    Column("status", lambda sweep: (sweep["status"], _STYLES[sweep["status"]])),
    Column("runs", lambda sweep: run_counts(sweep) or "none", shrinks=True),
    Column("best", lambda sweep: number(sweep["best"]["mean"]) if sweep["best"] else "", right=True),
    Column("created", lambda sweep: ago(sweep["created_at"]), style="dim", right=True),
    Column("goal", "goal", shrinks=True, optional=True),
]


def progress_bar(sweep: Json) -> str:
    """Return a bar with the number of ended runs and of all runs."""
    progress = sweep["progress"]
    done = sum(progress[status] for status in TERMINAL)
    limit = sweep["max_runs"] if sweep["method"] == "adaptive" else None
    total = max(progress["total"], limit or 0)
    filled = round(_BAR * done / total) if total else 0
    return f"{'█' * filled}{'░' * (_BAR - filled)} {done}/{total}"


def follow_sweep(screen: Screen, client: LabClient, sweep_id: str) -> Json:
    """Show progress until the sweep is not running any more, and return it."""
    with screen.progress() as progress:
        for sweep in _changes(client, sweep_id):
            failed = sweep["progress"]["failed"] + sweep["progress"]["lost"]
            best = f" · best {number(sweep['best']['mean'])}" if sweep["best"] else ""
            progress.now(f"{sweep['name']} {progress_bar(sweep)}{best}{f' · {failed} failed' if failed else ''}")
    return sweep


def _changes(client: LabClient, sweep_id: str) -> Iterator[Json]:
    def concerns(frame: Frame) -> bool:
        return bool(frame.data.get("sweep_id") == sweep_id)

    def is_frequent(frame: Frame) -> bool:
        return frame.event == EventType.RUN_STATUS

    query: dict[str, object] = {"types": _TYPES}
    for sweep, _ in watch(
        client, lambda: client.sweep(sweep_id), query, note, concerns=concerns, is_frequent=is_frequent
    ):
        yield sweep
        if sweep["status"] != "running":
            return


def show_sweep(
    screen: Screen, client: LabClient, sweep: Json, *, key: str | None = None, goal: str | None = None, limit: int = 10
) -> None:
    has_metric = key is not None or sweep["metric"] is not None
    results = client.sweep_results(sweep["id"], key, goal, limit) if has_metric else None
    if screen.as_json:
        screen.json({**sweep, "results": results})
        return
    screen.facts(
        [
            ("sweep", (sweep["id"], "bold")),
            ("name", sweep["name"]),
            ("goal", sweep["goal"]),
            ("method", sweep["method"]),
            ("status", (sweep["status"], _STYLES[sweep["status"]])),
            ("why", sweep["status_reason"]),
            ("runs", f"{progress_bar(sweep)}  {run_counts(sweep) or 'no runs yet'}"),
            ("seeds", ", ".join(map(str, sweep["seeds"]))),
            ("budget", ", ".join(f"{value:g} {name}" for name, value in sweep["budget"].items())),
            ("created", ago(sweep["created_at"])),
        ]
    )
    if results is None:
        screen.suggest(f"Results: labwright sweep show {sweep['id']} --key METRIC --goal min")
        return
    _show_configurations(screen, results)
    _plot_best(screen, results)
    _show_importance(screen, results["importance"])
    screen.heading("Verdict")
    screen.paragraph(results["verdict"]["text"])
    screen.suggest(f"Full table: labwright sweep show {sweep['id']} --export csv")


def _show_configurations(screen: Screen, results: Json) -> None:
    found, metric = results["configurations"], results["metric"]
    names = list(dict.fromkeys(name for configuration in found for name in configuration["params"]))

    def parameter(name: str) -> Column:
        return Column(name, lambda row: _value(row["params"].get(name)), right=True, shrinks=True)

    screen.heading(f"Best by mean {metric['key']} ({metric['goal']})")
    columns = [
        Column("#", lambda row: _value(row["trial"]), right=True),
        *map(parameter, names),
        Column("mean", lambda row: _value(row["mean"]), right=True),
        Column("± std", lambda row: _value(row["std"]), right=True),
        Column("n", lambda row: str(row["n"]), right=True),
        Column("run", lambda row: row["run_ids"][0]),
    ]
    screen.table(columns, found)
    if results["total"] > len(found):
        screen.print((f"{len(found)} of {plural(results['total'], 'configuration')}", "dim"))


def _value(value: Any) -> str:
    return "" if value is None else number(value) if isinstance(value, float) else as_text(value)


def _plot_best(screen: Screen, results: Json) -> None:
    """Plot the best value so far as a staircase."""
    points = results["best_so_far"]
    if len(points) < 2:
        return
    xs: list[float] = []
    ys: list[float] = []
    for count, best in points:
        xs += [count, count] if ys else [count]
        ys += [ys[-1], best] if ys else [best]
    screen.heading(f"Best {results['metric']['key']} so far, by finished configurations")
    print_plot(screen, [PlotCurve(xs=xs, ys=ys)], _ROWS, log=False)


def _show_importance(screen: Screen, found: Json) -> None:
    screen.heading("Parameter importance")
    if found["note"]:
        screen.print((found["note"], "dim"))
        return
    room = max((len(name) for name in found["parameters"]), default=0)
    for name, share in found["parameters"].items():
        screen.print(f"{name:<{room}}  ", ("█" * round(share * _BAR) or "▏", "blue"), f" {share:.0%}")
    screen.print((found["method"], "dim"))
