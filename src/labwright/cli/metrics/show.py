"""`metrics`: a run's numbers as a table, and as curves that fit the terminal."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from labwright.cli.formatting import counted, number, one_line, shorten, width
from labwright.cli.metrics.plot import STYLES, Curve, count_words, draw, spark
from labwright.cli.options import AsJson, LastRun, Project, connect
from labwright.cli.runs.view import number_cell, refused_line, status_cell
from labwright.cli.screen import Cell, Column, Screen, note
from labwright.client.follow import follow_events, is_ended, look
from labwright.client.lab import LabClient
from labwright.domain.errors import NotFound
from labwright.domain.event import EventType
from labwright.domain.metrics.points import listed

Json = dict[str, Any]
SYSTEM = "system"  # the source of what the machine itself tells; a run's own metrics come first
_FEW_KEYS = 3
_LISTED = 40
_TREND = 16  # columns of the line of blocks
_NARROW = 70  # columns that the numbers take
_DEFAULT_POINTS = 1000
_HINT_SECONDS = 0.15
_ROWS = (6, 16)  # of one plot
_NEW_SCREEN, _OLD_SCREEN, _HOME, _CLEAR = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l", "\x1b[H", "\x1b[J"


class Axis(StrEnum):
    STEP = "step"
    TIME = "time"
    EPOCH = "epoch"


Keys = Annotated[
    list[str] | None, typer.Option("--key", metavar="KEY", help="This metric; repeat for more. * fits any.")
]
X = Annotated[Axis, typer.Option("--x", help="What runs to the right.")]
Log = Annotated[bool, typer.Option("--log", help="A logarithmic scale.")]
MaxPoints = Annotated[
    int | None, typer.Option("--max-points", min=2, max=100_000, metavar="N", help="Thin to so many; extremes stay.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What was asked for."""

    keys: list[str] | None
    x: Axis
    max_points: int | None
    log: bool


def metrics(
    run: LastRun = "last",
    key: Keys = None,
    x: X = Axis.STEP,
    max_points: MaxPoints = None,
    log: Log = False,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Draw again as it grows, until the run ends.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """A table of all metrics; with --key, or where there are few, curves as well."""
    screen, client = Screen(as_json=as_json), connect(project)
    found = client.run(run)
    view = View(keys=key, x=x, max_points=max_points, log=log)
    if follow:
        _follow(screen, client, found, view)
    elif as_json:
        screen.json(_read(client, found["id"], view, max_points or _DEFAULT_POINTS))
    else:
        _show(screen, client, found, view)
        screen.next(f"Beside others: labwright compare {found['id']} RUN… --key KEY")


def _read(client: LabClient, run_id: str, view: View, max_points: int, keys: list[str] | None = None) -> Json:
    wanted = keys if keys is not None else _matching(client, run_id, view.keys)
    return client.metrics(run_id, wanted, max_points, view.x)


def _matching(client: LabClient, run_id: str, patterns: list[str] | None) -> list[str] | None:
    """The keys that are meant; all without a pattern. A key may itself hold a star."""
    if not patterns:
        return None
    known = client.metric_keys(run_id)
    found = [key for key in known if any(key == pattern or fnmatchcase(key, pattern) for pattern in patterns)]
    for pattern in patterns:
        if not any(key == pattern or fnmatchcase(key, pattern) for key in found):
            hint = f"It has: {listed(known)}." if known else "It has none yet."
            raise NotFound(f"Run {run_id} has no metric {pattern!r}.", hint=hint)
    return found


def _show(screen: Screen, client: LabClient, run: Json, view: View, *, rows: int | None = None) -> None:
    screen.say((run["id"], "bold"), "  ", one_line(run["name"]), "  ", status_cell(run["status"]))
    answer = _read(client, run["id"], view, _TREND * 4)
    refused_line(screen, answer["refused"])
    found = sorted(answer["series"], key=_own_first)
    if not found:
        screen.say("No metrics yet. A line of JSON in its output is one, and so is labwright.log() in its code.")
        return
    _table(screen, found)
    keys = [series["key"] for series in found if view.keys or series["source"] != SYSTEM]
    if view.keys or (screen.is_terminal and 0 < len(keys) <= _FEW_KEYS):
        room = (rows or screen.rows) - min(len(found), _LISTED) - 4
        drawn = keys[: max(1, room // (_ROWS[0] + 4))] if rows else keys
        points = view.max_points or screen.columns * 4
        for series in _read(client, run["id"], view, points, drawn)["series"]:
            _plot(screen, series, view, _height(len(drawn), room))


def _own_first(series: Json) -> tuple[bool, str]:
    return series["source"] == SYSTEM, series["key"]


def _height(plots: int, room: int) -> int:
    """All of them on one screen, as long as that leaves enough of each."""
    return max(_ROWS[0], min(_ROWS[1], room // plots - 4))


def _table(screen: Screen, found: list[Json]) -> None:
    room = screen.columns - _NARROW if screen.is_terminal else 0
    trend = min(_TREND, room)
    names = ("last", "min", "max") if room < 0 else ("last", "min", "max", "mean")
    columns = [
        Column(title="metric", shrinks=True),
        *(Column(title=name, right=True) for name in (*names, "step")),
        Column(title="source"),
        *([Column(title="trend")] if trend >= len("trend") else []),
    ]
    shown = found[:_LISTED] if screen.is_terminal else found
    screen.table(columns, [_row(series, names, trend) for series in shown])
    if len(found) > len(shown):
        screen.say((f"… and {counted(len(found) - len(shown), 'more')[:-1]}; name them with --key", "dim"))


def _row(series: Json, names: tuple[str, ...], trend: int) -> list[Cell]:
    numbers = [number_cell(series[name]) for name in names]
    blocks: list[Cell] = [(spark(values_of(series["values"]), trend), "blue")] if trend >= len("trend") else []
    return [series["key"], *numbers, count_words(series["last_step"] or 0), (series["source"], "dim"), *blocks]


def _plot(screen: Screen, series: Json, view: View, rows: int) -> None:
    values = values_of(series["values"])
    screen.say("")
    name = shorten(one_line(series["key"]), screen.columns)
    screen.say((name, "bold"), (shorten(f"  {_about(series, values, view)}", screen.columns - width(name)), "dim"))
    xs: list[float] = series["steps"]
    words: Callable[[float], str] | None = None
    if view.x is Axis.TIME:
        (xs, values), words = _by_time(series["times"], values), time_words
    elif view.x is Axis.EPOCH:
        xs, values = _with_epochs(screen, series["epochs"], values)
    print_lines(screen, [Curve(xs=xs, ys=values, style=STYLES[0])], rows, log=view.log, x_words=words)


def _by_time(times: list[float], values: list[float]) -> tuple[list[float], list[float]]:
    """From the earliest on; a clock that was set back, or whoever sent them, may have told them in another order."""
    placed = sorted(zip(times, values, strict=True), key=lambda point: point[0])
    return [moment - placed[0][0] for moment, _ in placed], [value for _, value in placed]


def _with_epochs(screen: Screen, epochs: list[float | str], values: list[float]) -> tuple[list[float], list[float]]:
    """A point has a place once an epoch was told."""
    placed = [(x, value) for x, value in zip(values_of(epochs), values, strict=True) if x == x]
    if not placed:
        screen.say(("No epochs: a metric `epoch` would tell them.", "amber"))
    return [x for x, _ in placed], [value for _, value in placed]


def print_lines(
    screen: Screen, curves: list[Curve], rows: int, *, log: bool, x_words: Callable[[float], str] | None = None
) -> None:
    for line in draw(curves, screen.columns, rows, log=log, x_words=x_words):
        screen.say(*line)


def _about(series: Json, values: list[float], view: View) -> str:
    words = [f"last {number(series['last'])} at step {count_words(series['last_step'] or 0)}"]
    gaps = sum(value != value or value in (float("inf"), -float("inf")) for value in values)
    words += [f"{gaps} not finite"] if gaps else []
    if view.log and any(value <= 0 for value in values):
        words.append("a logarithmic scale shows nothing at or below 0")
    words.append(f"{counted(series['count'], 'point')}, by {view.x}")
    return " · ".join(words)


def values_of(values: list[float | str]) -> list[float]:
    return [float(value) for value in values]


def time_words(seconds: float) -> str:
    whole = round(seconds)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")) if count]
    return " ".join(parts[:2]) or "0"


def _follow(screen: Screen, client: LabClient, run: Json, view: View) -> None:
    """Drawn on a screen of its own, so that what was there before comes back; the last picture stays."""
    if screen.as_json or not screen.is_terminal:
        for current in _changes(client, run["id"]):
            _print_change(screen, _read(client, run["id"], view, 2)["series"], current)
        return
    sys.stdout.write(_NEW_SCREEN)
    try:
        for current in _changes(client, run["id"]):
            _redraw(screen, client, current, view)
            run = current
    except KeyboardInterrupt:
        pass
    finally:
        sys.stdout.write(_OLD_SCREEN)
        sys.stdout.flush()
    _show(screen, client, run, view)


def _changes(client: LabClient, run_id: str) -> Iterator[Json]:
    """The run, now and whenever its metrics grew or its status changed, until it has ended."""
    drawn_at = 0.0
    query: dict[str, object] = {"topics": "events,hints", "run_id": run_id}
    for frame in follow_events(client, query, note):
        is_hint = frame.event == "hint"
        if frame.event not in ("hint", "hello", "reset", EventType.RUN_STATUS):
            continue
        if is_hint and (frame.data["topic"] != "metrics" or time.monotonic() - drawn_at < _HINT_SECONDS):
            continue
        run = look(client, run_id, note)
        yield run
        drawn_at = time.monotonic()
        if is_ended(run):
            return


def _redraw(screen: Screen, client: LabClient, run: Json, view: View) -> None:
    """In one write, so that nothing flickers."""
    picture = io.StringIO()
    with contextlib.redirect_stdout(picture):
        _show(screen, client, run, view, rows=screen.rows - 2)
        screen.say(("Ctrl-C leaves; the run goes on.", "dim"))
    lines = picture.getvalue().splitlines()[: screen.rows - 1]
    sys.stdout.write(_HOME + "".join(f"{line}\x1b[K\n" for line in lines) + _CLEAR)
    sys.stdout.flush()


def _print_change(screen: Screen, found: list[Json], run: Json) -> None:
    if screen.as_json:
        last = {series["key"]: {"step": series["last_step"], "last": series["last"]} for series in found}
        screen.json_line({"run_id": run["id"], "status": run["status"], "metrics": last})
    elif found:
        step = max(series["last_step"] or 0 for series in found)
        screen.say(
            f"step {step}  " + "  ".join(f"{one_line(series['key'])} {number(series['last'])}" for series in found)
        )
