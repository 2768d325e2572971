"""`compare`: one metric of several runs, as curves in one plot and as a table. Runs over seeds are averaged."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Annotated, Any

import typer

from labwright.cli.command import with_client
from labwright.cli.formatting import number, one_line, plural
from labwright.cli.metrics.plot import MARKS, STYLES, PlotCurve, short_count
from labwright.cli.metrics.show import SYSTEM, Axis, Log, MaxPoints, X, floats, print_plot, time_label
from labwright.cli.references import RunRefs, runs_of
from labwright.cli.runs.view import rejected_points
from labwright.cli.screen import Cell, Column, Screen, warn
from labwright.client.lab import LabClient

Json = dict[str, Any]
_DRAWN = 8
_ROWS = (8, 18)


@with_client
def compare(
    screen: Screen,
    client: LabClient,
    runs: RunRefs,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="The metric. Default: a table of all metrics.")
    ] = None,
    x: X = Axis.STEP,
    max_points: MaxPoints = None,
    log: Log = False,
) -> None:
    """Runs that differ only in their seed are shown as mean ± standard deviation."""
    found = {run["id"]: run for run in runs_of(client, runs)}
    if key is None:
        _compare_all_keys(screen, list(found.values()))
        return
    compared = client.compare(list(found), key, max_points or (1000 if screen.as_json else screen.columns * 4), x)
    if screen.as_json:
        screen.json(compared)
        return
    over_seeds = any(group["n"] > 1 for group in compared["groups"])
    lines = _lines(compared, found, over_seeds=over_seeds)
    drawn = [line for line in lines if line.mark]
    rows = max(_ROWS[0], min(_ROWS[1], screen.rows - len(lines) - 8))
    screen.print((key, "bold"), (f"  by {x}{', mean ± std over seeds' if over_seeds else ''}", "dim"))
    label = time_label if x is Axis.TIME else None
    print_plot(screen, [curve for line in drawn for curve in line.curves], rows, log=log, x_label=label)
    screen.print("")
    screen.table(_columns(compared["x"], over_seeds=over_seeds), lines)
    _show_left_out(screen, key, compared, found)
    curves = sum(bool(line.ys) for line in lines)
    if curves > len(drawn):
        screen.print((f"{len(drawn)} of {curves} are drawn: those with a mark.", "dim"))
    screen.suggest(f"All values: labwright export {' '.join(found)} --key {shlex.quote(key)}")


@dataclass(slots=True)
class _Line:
    """One row of the table and its curves."""

    run_ids: list[str]
    name: str
    xs: list[float]
    ys: list[float]
    differs: str
    spread: list[float] = field(default_factory=list)  # NaN if only one run has a value
    counts: list[int] = field(default_factory=list)  # how many runs have a value
    style: str = ""  # empty if it is not drawn
    mark: str = ""

    @property
    def curves(self) -> list[PlotCurve]:
        main = PlotCurve(xs=self.xs, ys=self.ys, style=self.style, mark=self.mark)
        if not any(s > 0 for s in self.spread):
            return [main]
        edges = [[y + sign * s for y, s in zip(self.ys, self.spread, strict=True)] for sign in (-1, 1)]
        return [*(PlotCurve(xs=self.xs, ys=edge, style=self.style, dotted=True) for edge in edges), main]

    @property
    def last(self) -> str:
        """Return the last value, with its deviation, and the number of runs if some have ended before."""
        if not self.ys:
            return "–"
        text = number(self.ys[-1])
        if not self.counts:
            return text
        if not math.isnan(self.spread[-1]):
            text += f" ± {number(self.spread[-1])}"
        return text if self.counts[-1] == len(self.run_ids) else f"{text} ({self.counts[-1]} of {len(self.run_ids)})"


def _lines(compared: Json, runs: dict[str, Json], *, over_seeds: bool) -> list[_Line]:
    axis = f"{compared['x']}s"
    found = compared["groups"] if over_seeds else [{**run, "run_ids": [run["run_id"]]} for run in compared["runs"]]
    firsts = [runs[entry["run_ids"][0]] for entry in found]
    differences = _differences([entry["params"] for entry in found], [run["command"] for run in firsts])
    lines = []
    for entry, run, differs in zip(found, firsts, differences, strict=True):
        values = floats(entry["mean" if over_seeds else "values"])
        line = _Line(entry["run_ids"], run["name"], entry[axis], values, differs)
        if over_seeds:
            line.spread = [math.nan if value is None else float(value) for value in entry["std"]]
            line.counts = entry["counts"]
        lines.append(line)
    for index, line in enumerate([line for line in lines if line.ys][:_DRAWN]):  # more could not be distinguished
        line.style, line.mark = STYLES[index % len(STYLES)], MARKS[index % len(MARKS)]
    return lines


def _columns(x: str, *, over_seeds: bool) -> list[Column]:
    def runs(line: _Line) -> str:
        return f"{plural(len(line.run_ids), 'run')}: {', '.join(line.run_ids)}" if over_seeds else line.run_ids[0]

    def extreme(pick: Any) -> Any:
        def cell(line: _Line) -> str:
            finite = [y for y in line.ys if math.isfinite(y)]
            return number(pick(finite)) if finite else "–"

        return cell

    def position(line: _Line) -> str:
        labels = {Axis.STEP: short_count, Axis.TIME: time_label, Axis.EPOCH: number}
        return labels[Axis(x)](line.xs[-1]) if line.xs else "–"

    return [
        Column("", lambda line: (line.mark, line.style)),
        Column("runs" if over_seeds else "run", runs, shrinks=over_seeds),
        *([] if over_seeds else [Column("name", lambda line: line.name, shrinks=True)]),
        Column("last", lambda line: line.last, right=True),
        Column("min", extreme(min), right=True),
        Column("max", extreme(max), right=True),
        Column(x, position, right=True),
        Column("differs in", lambda line: line.differs, style="dim", shrinks=True),
    ]


def _differences(configs: list[Json], commands: list[str]) -> list[str]:
    """Return the parameters that differ, or else what differs in the commands."""
    names = sorted({name for config in configs for name in config})
    differing = [name for name in names if any(config.get(name) != configs[0].get(name) for config in configs)]
    if differing:
        return [", ".join(f"{name}={number(config.get(name, '–'))}" for name in differing) for config in configs]
    if len(set(commands)) == 1:
        return [""] * len(commands)
    words = [command.split() for command in commands]
    start = _common_prefix(words)
    if start and words[0][start - 1].startswith("-"):
        start -= 1  # a flag stays with its value
    rests = [each[start:] for each in words]
    end = _common_prefix([rest[::-1] for rest in rests])
    return [" ".join(rest[: len(rest) - end]) for rest in rests]


def _common_prefix(lists: list[list[str]]) -> int:
    return len(list(takewhile(lambda words: len(set(words)) == 1, zip(*lists, strict=False))))


def _show_left_out(screen: Screen, key: str, compared: Json, runs: dict[str, Json]) -> None:
    """Show which values are not in the curves and means, and which were not stored."""
    gaps = [run["run_id"] for run in compared["runs"] if not all(map(math.isfinite, floats(run["values"])))]
    if gaps:
        screen.print(("NaN and infinite values are left out: ", "yellow"), ", ".join(gaps))
    for run_id, run in runs.items():
        for entry in run["refused"].get("first", ()):
            if entry["key"] == key:
                text = f"{plural(entry['count'], 'value')} of {run_id} ({one_line(entry['why'])})"
                screen.print(("rejected: ", "yellow"), text)


def _compare_all_keys(screen: Screen, runs: list[Json]) -> None:
    """Show the last value of every metric, with one column per run."""
    sources = {key: known.get("source") for run in runs for key, known in run["summary"].items()}
    keys = sorted(sources, key=lambda key: (sources[key] == SYSTEM, key))
    if screen.as_json:
        screen.json({key: {run["id"]: run["summary"].get(key, {}).get("last") for run in runs} for key in keys})
        for text in _missing_metrics(runs):
            warn(text)
        return
    if keys:
        columns = [Column("metric", lambda key: key or "", shrinks=True), *map(_run_column, runs)]
        screen.table(columns, [None, *keys])
    else:
        screen.print("None of these runs has metrics yet.")
    for text in _missing_metrics(runs):
        screen.print((text, "yellow"))
    if keys:
        screen.suggest(f"Curves: labwright compare {' '.join(run['id'] for run in runs)} --key {shlex.quote(keys[0])}")


def _run_column(run: Json) -> Column:
    """Return a column with the run's name and its last values."""

    def cell(key: str | None) -> Cell:
        if key is None:
            return run["name"][:15], "dim"
        found = run["summary"].get(key)
        return number(found["last"]) if found else ("–", "dim")

    return Column(run["id"], cell, right=True, shrinks=True)


def _missing_metrics(runs: list[Json]) -> Iterator[str]:
    for run in runs:
        if left_out := run.get("summary_left_out"):  # missing in records of older versions
            yield f"not shown: {plural(left_out, 'more metric')} of {run['id']}: labwright metrics {run['id']}"
        if run["refused"]:
            yield f"rejected metric values of {run['id']}: {rejected_points(run['refused'])}"
