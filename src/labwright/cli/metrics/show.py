"""`metrics`: a run's metrics as a table, and as curves that fit the terminal."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from labwright.cli.command import with_client
from labwright.cli.formatting import number, one_line, plural, shorten, width
from labwright.cli.metrics.plot import STYLES, PlotCurve, draw, short_count, sparkline
from labwright.cli.references import LastRun
from labwright.cli.runs.view import number_cell, show_rejected_points, status_cell
from labwright.cli.screen import Column, Screen, note
from labwright.client.follow import Frame, is_ended, watch
from labwright.client.lab import LabClient
from labwright.domain.errors import NotFound
from labwright.domain.event import EventType
from labwright.domain.metrics.points import listed

Json = dict[str, Any]
SYSTEM = "system"  # the source of the machine's own metrics; they are listed after the run's
_FEW_KEYS = 3
_LISTED = 40
_TREND = 16  # columns of a sparkline
_WITHOUT_TREND = 70  # columns that the other columns take
_DEFAULT_POINTS = 1000
_ROWS = (6, 16)  # of one plot
_NEW_SCREEN, _OLD_SCREEN, _HOME, _CLEAR = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l", "\x1b[H", "\x1b[J"


class Axis(StrEnum):
    STEP = "step"
    TIME = "time"
    EPOCH = "epoch"


Keys = Annotated[
    list[str] | None, typer.Option("--key", metavar="KEY", help="A metric; * matches any text. Can be repeated.")
]
X = Annotated[Axis, typer.Option("--x", help="The x axis.")]
Log = Annotated[bool, typer.Option("--log", help="Use a logarithmic scale.")]
MaxPoints = Annotated[
    int | None,
    typer.Option("--max-points", min=2, max=100_000, metavar="N", help="Downsample to N points, keeping min and max."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRequest:
    """The options of `labwright metrics`."""

    keys: list[str] | None
    x: Axis
    max_points: int | None
    log: bool


@with_client
def metrics(
    screen: Screen,
    client: LabClient,
    run: LastRun = "last",
    key: Keys = None,
    x: X = Axis.STEP,
    max_points: MaxPoints = None,
    log: Log = False,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Redraw as points arrive, until the run ends.")
    ] = False,
) -> None:
    """Shows a table of all metrics. With --key, or if there are few metrics, curves are drawn too."""
    found = client.run(run)
    request = MetricRequest(keys=key, x=x, max_points=max_points, log=log)
    if follow:
        _follow(screen, client, found, request)
    elif screen.as_json:
        screen.json(_read(client, found["id"], request, max_points or _DEFAULT_POINTS))
    else:
        _show(screen, client, found, request)
        screen.suggest(f"Compare runs: labwright compare {found['id']} RUN… --key KEY")


def _read(
    client: LabClient, run_id: str, request: MetricRequest, max_points: int, keys: list[str] | None = None
) -> Json:
    if keys is None and request.keys:
        keys = _matching_keys(client, run_id, request.keys)
    return client.metrics(run_id, keys, max_points, request.x)


def _matching_keys(client: LabClient, run_id: str, patterns: list[str]) -> list[str]:
    """Return the keys that match. A key may itself contain a star."""
    known = client.metric_keys(run_id)
    found = [key for key in known if any(key == pattern or fnmatchcase(key, pattern) for pattern in patterns)]
    for pattern in patterns:
        if not any(key == pattern or fnmatchcase(key, pattern) for key in found):
            hint = f"It has: {listed(known)}." if known else "It has no metrics yet."
            raise NotFound(f"Run {run_id} has no metric {pattern!r}.", hint=hint)
    return found


def _show(screen: Screen, client: LabClient, run: Json, request: MetricRequest, *, rows: int | None = None) -> None:
    screen.item(run["id"], one_line(run["name"]), "  ", status_cell(run["status"]))
    response = _read(client, run["id"], request, _TREND * 4)
    show_rejected_points(screen, response["refused"])
    found = sorted(response["series"], key=lambda series: (series["source"] == SYSTEM, series["key"]))
    if not found:
        screen.print("No metrics yet. Log them with labwright.log(), or print lines of JSON.")
        return
    _show_table(screen, found)
    keys = [series["key"] for series in found if request.keys or series["source"] != SYSTEM]
    if request.keys or (screen.is_terminal and 0 < len(keys) <= _FEW_KEYS):
        room = (rows or screen.rows) - min(len(found), _LISTED) - 4
        drawn = keys[: max(1, room // (_ROWS[0] + 4))] if rows else keys
        height = max(_ROWS[0], min(_ROWS[1], room // len(drawn) - 4))  # all on one screen if possible
        points = request.max_points or screen.columns * 4
        for series in _read(client, run["id"], request, points, drawn)["series"]:
            _plot(screen, series, request, height)


def _show_table(screen: Screen, found: list[Json]) -> None:
    room = screen.columns - _WITHOUT_TREND if screen.is_terminal else 0
    trend = min(_TREND, room)

    def statistic(name: str) -> Column:
        return Column(name, lambda series: number_cell(series[name]), right=True)

    columns = [
        Column("metric", "key", shrinks=True),
        *map(statistic, ("last", "min", "max") if room < 0 else ("last", "min", "max", "mean")),
        Column("step", lambda series: short_count(series["last_step"] or 0), right=True),
        Column("source", "source", style="dim"),
    ]
    if trend >= len("trend"):
        columns.append(Column("trend", lambda series: sparkline(floats(series["values"]), trend), style="blue"))
    shown = found[:_LISTED] if screen.is_terminal else found
    screen.table(columns, shown)
    if len(found) > len(shown):
        screen.print((f"… and {len(found) - len(shown)} more; select them with --key", "dim"))


def _plot(screen: Screen, series: Json, request: MetricRequest, rows: int) -> None:
    values = floats(series["values"])
    screen.print("")
    name = shorten(one_line(series["key"]), screen.columns)
    about = shorten(f"  {_about(series, values, request)}", screen.columns - width(name))
    screen.print((name, "bold"), (about, "dim"))
    xs: list[float] = series["steps"]
    x_label: Callable[[float], str] | None = None
    if request.x is Axis.TIME:
        # Sorted: clocks can be set back, and clients can send points in any order.
        points = sorted(zip(series["times"], values, strict=True), key=lambda point: point[0])
        xs, values, x_label = [time - points[0][0] for time, _ in points], [value for _, value in points], time_label
    elif request.x is Axis.EPOCH:
        points = [(x, y) for x, y in zip(floats(series["epochs"]), values, strict=True) if x == x]
        xs, values = [x for x, _ in points], [value for _, value in points]
        if not points:
            screen.print(("No epochs. Log a metric named `epoch`.", "yellow"))
    print_plot(screen, [PlotCurve(xs=xs, ys=values, style=STYLES[0])], rows, log=request.log, x_label=x_label)


def print_plot(
    screen: Screen, curves: list[PlotCurve], rows: int, *, log: bool, x_label: Callable[[float], str] | None = None
) -> None:
    for line in draw(curves, screen.columns, rows, log=log, x_label=x_label):
        screen.print(*line)


def _about(series: Json, values: list[float], request: MetricRequest) -> str:
    parts = [f"last {number(series['last'])} at step {short_count(series['last_step'] or 0)}"]
    gaps = sum(value != value or value in (float("inf"), -float("inf")) for value in values)
    parts += [f"{gaps} not finite"] if gaps else []
    if request.log and any(value <= 0 for value in values):
        parts.append("values at or below 0 are not shown")
    parts.append(f"{plural(series['count'], 'point')}, by {request.x}")
    return " · ".join(parts)


def floats(values: list[float | str]) -> list[float]:
    return [float(value) for value in values]


def time_label(seconds: float) -> str:
    whole = round(seconds)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")) if count]
    return " ".join(parts[:2]) or "0"


def _follow(screen: Screen, client: LabClient, run: Json, request: MetricRequest) -> None:
    """Redraw on the alternate screen until the run ends. The last plot stays on the normal screen."""
    if screen.as_json or not screen.is_terminal:
        for current in _changes(client, run["id"]):
            _print_change(screen, _read(client, run["id"], request, 2)["series"], current)
        return
    sys.stdout.write(_NEW_SCREEN)
    try:
        for current in _changes(client, run["id"]):
            _redraw(screen, client, current, request)
            run = current
    except KeyboardInterrupt:
        pass
    finally:
        sys.stdout.write(_OLD_SCREEN)
        sys.stdout.flush()
    _show(screen, client, run, request)


def _changes(client: LabClient, run_id: str) -> Iterator[Json]:
    """Yield the run now, and when its metrics grow or its status changes, until it has ended."""

    def concerns(frame: Frame) -> bool:
        return frame.event == EventType.RUN_STATUS or (is_hint(frame) and bool(frame.data["topic"] == "metrics"))

    def is_hint(frame: Frame) -> bool:
        return frame.event == "hint"

    query: dict[str, object] = {"topics": "events,hints", "run_id": run_id}
    for run, _ in watch(client, lambda: client.run(run_id), query, note, concerns=concerns, is_frequent=is_hint):
        yield run
        if is_ended(run):
            return


def _redraw(screen: Screen, client: LabClient, run: Json, request: MetricRequest) -> None:
    """Draw everything with one write, so that nothing flickers."""
    picture = io.StringIO()
    with contextlib.redirect_stdout(picture):
        _show(screen, client, run, request, rows=screen.rows - 2)
        screen.print(("Ctrl-C quits; the run continues.", "dim"))
    lines = picture.getvalue().splitlines()[: screen.rows - 1]
    sys.stdout.write(_HOME + "".join(f"{line}\x1b[K\n" for line in lines) + _CLEAR)
    sys.stdout.flush()


def _print_change(screen: Screen, found: list[Json], run: Json) -> None:
    if screen.as_json:
        last = {series["key"]: {"step": series["last_step"], "last": series["last"]} for series in found}
        screen.json_line({"run_id": run["id"], "status": run["status"], "metrics": last})
    elif found:
        step = max(series["last_step"] or 0 for series in found)
        values = "  ".join(f"{one_line(series['key'])} {number(series['last'])}" for series in found)
        screen.print(f"step {step}  {values}")
