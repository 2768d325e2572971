"""`compare`: one metric over several runs, as curves over each other and as a table; over seeds, their mean."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from itertools import takewhile
from typing import Annotated, Any

import typer

from labwright.cli.formatting import counted, number, one_line
from labwright.cli.metrics.plot import MARKS, STYLES, Curve, count_words
from labwright.cli.metrics.show import SYSTEM, Axis, Log, MaxPoints, X, print_lines, time_words, values_of
from labwright.cli.options import AsJson, Project, RunRefs, connect
from labwright.cli.runs.view import refused_words
from labwright.cli.screen import Cell, Column, Screen, warn

Json = dict[str, Any]
_DRAWN = 8
_ROWS = (8, 18)


def compare(
    runs: RunRefs,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="The metric. Default: a table of all.")
    ] = None,
    x: X = Axis.STEP,
    max_points: MaxPoints = None,
    log: Log = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Runs that differ only in their seed are shown as their mean ± standard deviation."""
    screen, client = Screen(as_json=as_json), connect(project)
    found = {run["id"]: run for run in map(client.run, runs)}
    if key is None:
        _all_keys(screen, list(found.values()))
        return
    compared = client.compare(list(found), key, max_points or (1000 if as_json else screen.columns * 4), x)
    if as_json:
        screen.json(compared)
        return
    lines = _lines(compared)
    drawn = _mark_drawn(lines)
    rows = max(_ROWS[0], min(_ROWS[1], screen.rows - len(lines) - 8))
    over_seeds = ", mean ± std over seeds" if _over_seeds(compared) else ""
    screen.say((key, "bold"), (f"  by {x}{over_seeds}", "dim"))
    words = time_words if x is Axis.TIME else None
    print_lines(screen, [curve for line in drawn for curve in line.curves], rows, log=log, x_words=words)
    screen.say("")
    _table(screen, lines, found, compared)
    _say_what_is_left_out(screen, key, compared, found)
    curves = sum(bool(line.ys) for line in lines)
    if curves > len(drawn):
        screen.say((f"Drawn: those with a mark, {len(drawn)} of {curves}.", "dim"))
    screen.next(f"All the numbers: labwright export {' '.join(found)} --key {shlex.quote(key)}")


def _say_what_is_left_out(screen: Screen, key: str, compared: Json, runs: dict[str, Json]) -> None:
    """Values that are in no curve and no mean, and those that were not taken at all."""
    strange = [run["run_id"] for run in compared["runs"] if not all(map(math.isfinite, values_of(run["values"])))]
    if strange:
        screen.say(("NaN or infinite in places, and left out there: ", "amber"), ", ".join(strange))
    for run_id, run in runs.items():
        for entry in run["refused"].get("first", ()):
            if entry["key"] == key:
                words = f"{counted(entry['count'], 'value')} of {run_id} ({one_line(entry['why'])})"
                screen.say(("not taken: ", "amber"), words)


class _Line:
    """One row of the table and its curves."""

    def __init__(self, run_ids: list[str], params: Json, xs: list[float], ys: list[float]) -> None:
        self.run_ids = run_ids
        self.params = params
        self.xs = xs
        self.ys = ys
        self.style = self.mark = ""  # none where it is not drawn
        self.spread: list[float] = []  # NaN where only one run has a value
        self.counts: list[int] = []  # how many have one

    @property
    def curves(self) -> list[Curve]:
        main = Curve(xs=self.xs, ys=self.ys, style=self.style, mark=self.mark)
        if not any(s > 0 for s in self.spread):
            return [main]
        edges = [[y + sign * s for y, s in zip(self.ys, self.spread, strict=True)] for sign in (-1, 1)]
        return [*(Curve(xs=self.xs, ys=edge, style=self.style, dotted=True) for edge in edges), main]

    @property
    def last(self) -> str:
        """With its deviation, and with how many runs it is of where some have ended before."""
        if not self.ys:
            return "–"
        words = number(self.ys[-1])
        if not self.counts:
            return words
        if not math.isnan(self.spread[-1]):
            words += f" ± {number(self.spread[-1])}"
        return words if self.counts[-1] == len(self.run_ids) else f"{words} ({self.counts[-1]} of {len(self.run_ids)})"


def _over_seeds(compared: Json) -> bool:
    return any(group["n"] > 1 for group in compared["groups"])


def _lines(compared: Json) -> list[_Line]:
    axis = f"{compared['x']}s"
    if not _over_seeds(compared):
        return [_Line([run["run_id"]], run["params"], run[axis], values_of(run["values"])) for run in compared["runs"]]
    found = []
    for group in compared["groups"]:
        line = _Line(group["run_ids"], group["params"], group[axis], values_of(group["mean"]))
        line.spread = [math.nan if value is None else float(value) for value in group["std"]]
        line.counts = group["counts"]
        found.append(line)
    return found


def _mark_drawn(lines: list[_Line]) -> list[_Line]:
    """The first few that have something to draw; more could not be told apart."""
    drawn = [line for line in lines if line.ys][:_DRAWN]
    for index, line in enumerate(drawn):
        line.style, line.mark = STYLES[index % len(STYLES)], MARKS[index % len(MARKS)]
    return drawn


def _table(screen: Screen, lines: list[_Line], runs: dict[str, Json], compared: Json) -> None:
    over_seeds = _over_seeds(compared)
    names = ("last", "min", "max")
    columns = [
        Column(title=""),
        Column(title="runs" if over_seeds else "run", shrinks=over_seeds),
        *([] if over_seeds else [Column(title="name", shrinks=True)]),
        *(Column(title=name, right=True) for name in (*names, compared["x"])),
        Column(title="differs in", shrinks=True),
    ]
    words = _told_apart([line.params for line in lines], [runs[line.run_ids[0]]["command"] for line in lines])
    rows = [_row(line, runs, over_seeds, compared["x"]) for line in lines]
    screen.table(columns, [[*row, (differs, "dim")] for row, differs in zip(rows, words, strict=True)])


def _row(line: _Line, runs: dict[str, Json], over_seeds: bool, x: str) -> list[Cell]:
    finite = [y for y in line.ys if math.isfinite(y)]
    who: list[Cell] = [line.run_ids[0], runs[line.run_ids[0]]["name"]]
    if over_seeds:
        who = [f"{counted(len(line.run_ids), 'run')}: {', '.join(line.run_ids)}"]
    numbers = [line.last, *(_of(finite, pick) for pick in (min, max))]
    last = _place(line.xs[-1], x) if line.xs else "–"
    return [(line.mark, line.style), *who, *numbers, last]


def _place(at: float, x: str) -> str:
    return {Axis.STEP: count_words, Axis.TIME: time_words, Axis.EPOCH: number}[Axis(x)](at)


def _of(values: list[float], pick: Any) -> str:
    return number(pick(values)) if values else "–"


def _told_apart(configs: list[Json], commands: list[str]) -> list[str]:
    """By the parameters that differ; where none does, by what differs in the commands."""
    names = sorted({name for config in configs for name in config})
    differing = [name for name in names if any(config.get(name) != configs[0].get(name) for config in configs)]
    if not differing:
        return _parts_that_differ(commands)
    return [", ".join(f"{name}={number(config.get(name, '–'))}" for name in differing) for config in configs]


def _parts_that_differ(commands: list[str]) -> list[str]:
    """What is left without the words that all begin and end with; a flag stays with its value."""
    if len(set(commands)) == 1:
        return [""] * len(commands)
    words = [command.split() for command in commands]
    start = _alike_at_first(words)
    if start and words[0][start - 1].startswith("-"):
        start -= 1
    rests = [each[start:] for each in words]
    end = _alike_at_first([rest[::-1] for rest in rests])
    return [" ".join(rest[: len(rest) - end]) for rest in rests]


def _alike_at_first(lists: list[list[str]]) -> int:
    return len(list(takewhile(lambda words: len(set(words)) == 1, zip(*lists, strict=False))))


def _all_keys(screen: Screen, runs: list[Json]) -> None:
    """The last value of every metric, a column a run."""
    sources = {key: known.get("source") for run in runs for key, known in run["summary"].items()}
    keys = sorted(sources, key=lambda key: (sources[key] == SYSTEM, key))
    if screen.as_json:
        last = {key: {run["id"]: run["summary"].get(key, {}).get("last") for run in runs} for key in keys}
        screen.json(last)
        for words in _not_in_table(runs):
            warn(words)
        return
    if keys:
        columns = [Column(title="metric", shrinks=True), *(Column(title=run["id"], right=True) for run in runs)]
        names: list[Cell] = ["", *((run["name"][:15], "dim") for run in runs)]
        screen.table(columns, [names, *([key, *(_last(run, key) for run in runs)] for key in keys)])
    else:
        screen.say("None of these runs has metrics yet.")
    for words in _not_in_table(runs):
        screen.say((words, "amber"))
    if keys:
        screen.next(f"Curves: labwright compare {' '.join(run['id'] for run in runs)} --key {shlex.quote(keys[0])}")


def _not_in_table(runs: list[Json]) -> Iterator[str]:
    """Where a run has no value in the table, it may have one all the same; and what it logged may not be kept."""
    for run in runs:
        if left_out := run.get("summary_left_out"):  # not in records of older versions
            yield f"not shown: {counted(left_out, 'more metric')} of {run['id']}: labwright metrics {run['id']}"
        if run["refused"]:
            yield f"not taken as metrics: {run['id']}, {refused_words(run['refused'])}"


def _last(run: Json, key: str) -> Cell:
    found = run["summary"].get(key)
    return number(found["last"]) if found else ("–", "dim")
