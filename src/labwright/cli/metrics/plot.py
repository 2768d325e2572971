"""Draw curves as text: braille dots, axes with numbers, gaps for values that are not finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from labwright.cli.screen import Cell

STYLES = ("blue", "yellow", "magenta", "cyan", "green", "red")
MARKS = "●▲■◆○△□◇"
_BLOCKS = "▁▂▃▄▅▆▇█"
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a braille cell
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_NICE_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
_DAY = 86400
_HUGE = 1e300  # larger values are drawn in a larger unit, so that sums do not overflow
_HUGE_UNIT = 1e10
_LEAST = 5e-324
_EXACT = 2**50  # adding this fraction of a number still changes it
_BEYOND_UNITS = 1e15
_TICK_ROWS = 3
_TICK_COLUMNS = 14

Line = list[Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotCurve:
    xs: Sequence[float]
    ys: Sequence[float]  # NaN and infinity are gaps
    style: str = STYLES[0]
    mark: str = ""
    dotted: bool = False  # the edge of a deviation


@dataclass(frozen=True, slots=True)
class AxisScale:
    """Maps values to dots along one axis."""

    low: float
    high: float
    dots: int
    log: bool = False

    def at(self, value: float) -> int | None:
        if not math.isfinite(value) or (self.log and value <= 0):
            return None
        low, high, value = (self._linear(number) for number in (self.low, self.high, value))
        share = (value - low) / (high - low)
        return round(share * (self.dots - 1)) if -0.001 <= share <= 1.001 else None

    def _linear(self, value: float) -> float:
        return math.log10(value) if self.log else value


@dataclass(slots=True)
class Canvas:
    """Cells of 2 × 4 dots. A cell has the style that was drawn there last."""

    columns: int
    rows: int
    bits: dict[tuple[int, int], int] = field(default_factory=dict)
    styles: dict[tuple[int, int], str] = field(default_factory=dict)
    marks: dict[tuple[int, int], str] = field(default_factory=dict)

    def dot(self, x: int, y: int, style: str) -> tuple[int, int]:
        cell = (x // 2, self.rows - 1 - y // 4)
        self.bits[cell] = self.bits.get(cell, 0) | _BITS[3 - y % 4][x % 2]
        self.styles[cell] = style
        return cell

    def row(self, row: int) -> Line:
        return [self._cell((column, row)) for column in range(self.columns)]

    def _cell(self, cell: tuple[int, int]) -> Cell:
        text = self.marks.get(cell) or (chr(0x2800 + self.bits[cell]) if cell in self.bits else " ")
        return (text, self.styles.get(cell, "")) if text != " " else text


def draw(
    curves: Sequence[PlotCurve],
    columns: int,
    rows: int,
    *,
    log: bool = False,
    x_label: Callable[[float], str] | None = None,
    unit: float = 1.0,
) -> list[Line]:
    """Return the lines of a plot: `rows` of curves, and two for the x axis. With `x_label`, x is in seconds.

    Labels of the y axis are multiplied by `unit`.
    """
    places = [(x, y) for curve in curves for x, y in zip(curve.xs, curve.ys, strict=True) if abs(x) < _HUGE]
    xs = [x for x, y in places if math.isfinite(y)]
    ys = [y for _, y in places if math.isfinite(y) and (y > 0 or not log)]
    if not ys:
        return [[("(no values to draw)", "dim")]]
    if max(map(abs, ys)) >= _HUGE:
        smaller = [replace(curve, ys=[y / _HUGE_UNIT for y in curve.ys]) for curve in curves]
        return draw(smaller, columns, rows, log=log, x_label=x_label, unit=_HUGE_UNIT)
    low, high, ticks = _log_axis(min(ys), max(ys)) if log else _linear_axis(min(ys), max(ys), rows // _TICK_ROWS)
    ticks = [tick for tick in ticks if math.isfinite(tick * unit)]
    labels = _labels([tick * unit for tick in ticks])
    margin = max(len(label) for label in labels)
    room = max(10, columns - margin - 2)
    canvas = Canvas(room, rows)
    x_axis = AxisScale(min(xs), max(xs) if max(xs) > min(xs) else min(xs) + max(1, abs(min(xs)) / _EXACT), room * 2)
    y_axis = AxisScale(low, high, rows * 4, log)
    for index, curve in enumerate(curves):
        _draw_curve(canvas, curve, x_axis, y_axis, index / len(curves))
    at_row = {rows - 1 - (y_axis.at(tick) or 0) // 4: label for tick, label in zip(ticks, labels, strict=True)}
    lines = [_with_axis(canvas, row, at_row, margin) for row in range(rows)]
    return [*lines, *_x_axis(x_axis, margin, room, x_label)]


def _labels(ticks: list[float]) -> list[str]:
    """Format with four significant digits, or with more if labels would be equal."""
    for digits in range(4, 17):
        labels = [f"{tick:.{digits}g}" for tick in ticks]
        if len(set(labels)) == len(labels):
            break
    return labels


def _with_axis(canvas: Canvas, row: int, labels: dict[int, str], margin: int) -> Line:
    tick = row in labels
    return [(f"{labels.get(row, ''):>{margin}} {'┤' if tick else '│'}", "dim"), *canvas.row(row)]


def _draw_curve(canvas: Canvas, curve: PlotCurve, x_axis: AxisScale, y_axis: AxisScale, shift: float) -> None:
    dots = [(x_axis.at(x), y_axis.at(y)) for x, y in zip(curve.xs, curve.ys, strict=True)]
    touched: dict[int, tuple[int, int]] = {}
    whole = [(x, y) if x is not None and y is not None else None for x, y in dots]
    for dot in whole[:1]:
        if dot:
            touched[dot[0] // 2] = canvas.dot(*dot, curve.style)
    for before, after in pairwise(whole):
        if after is None:
            continue
        for x, y in _line(before or after, after):
            if not curve.dotted or (x + y) % 3 == 0:
                touched[x // 2] = canvas.dot(x, y, curve.style)
    if curve.mark and touched:
        _put_marks(canvas, curve, touched, shift)


def _put_marks(canvas: Canvas, curve: PlotCurve, touched: dict[int, tuple[int, int]], shift: float) -> None:
    """Put a few marks along the curve, apart from those of other curves, and one at its end."""
    stride = max(8, canvas.columns // 5)
    columns = {int(shift * stride) + stride * index for index in range(canvas.columns // stride + 1)} & touched.keys()
    for column in {*columns, max(touched)}:
        canvas.marks[touched[column]] = curve.mark
        canvas.styles[touched[column]] = curve.style


def _line(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for step in range(steps + 1):
        yield (
            start[0] + round((end[0] - start[0]) * step / steps),
            start[1] + round((end[1] - start[1]) * step / steps),
        )


def _apart(low: float, high: float) -> tuple[float, float]:
    """Return a range that is not empty, also for a single value."""
    if high > low and math.isfinite(high - low):
        return low, high
    room = abs(low) * 0.1 or 1.0
    return low - room, high + room


def _linear_axis(low: float, high: float, count: int) -> tuple[float, float, list[float]]:
    """Return the range of the values, and the round numbers in it."""
    low, high = _apart(low, high)
    return low, high, _ticks(low, high, max(2, count))


def _ticks(low: float, high: float, count: int) -> list[float]:
    """Return about `count` round numbers; more if the range has fewer than two."""
    step = _nice_step((high - low) / count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    found = [index * step for index in range(first, last + 1)]
    return found if len(found) > 1 or count > 9 else _ticks(low, high, count + 1)


def _nice_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next((nice * power for nice in _NICE if nice * power >= least * 0.999), 10 * power)


def _log_axis(low: float, high: float) -> tuple[float, float, list[float]]:
    """Return the range, with powers of ten as ticks: a selection if there are many, also 2 and 5 times if few."""
    if math.log10(high) - math.log10(low) < 1e-9:
        low, high = max(low / 2, _LEAST), high * 2
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, math.ceil((last - first) / 6))
    powers = [10.0**power for power in range(first, last + 1, stride)]
    few = powers if last - first > 3 else [nice * power for power in powers for nice in (1, 2, 5)]
    inside = [tick for tick in few if low <= tick <= high]
    return low, high, inside or [low, high]


def _x_axis(axis: AxisScale, margin: int, room: int, x_label: Callable[[float], str] | None) -> list[Line]:
    rule, labels = ["─"] * room, [" "] * room
    free_from = 0
    for tick in _x_ticks(axis, room // _TICK_COLUMNS, seconds=x_label is not None):
        column = (axis.at(tick) or 0) // 2
        text = x_label(tick) if x_label else short_count(tick)
        start = min(max(0, column - len(text) // 2), room - len(text))
        if start < free_from:
            continue
        rule[column] = "┬"
        labels[start : start + len(text)] = text
        free_from = start + len(text) + 1
    return [[(f"{'':>{margin}} └{''.join(rule)}", "dim")], [(f"{'':>{margin}}  {''.join(labels).rstrip()}", "dim")]]


def _x_ticks(axis: AxisScale, count: int, *, seconds: bool) -> list[float]:
    least = (axis.high - axis.low) / max(1, count)
    step = _nice_seconds(least) if seconds else _nice_step(least)
    if not seconds and float(axis.low).is_integer() and float(axis.high).is_integer():
        step = 5.0 if step == 2.5 else max(1.0, step)  # steps are whole numbers
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _nice_seconds(least: float) -> float:
    return next((float(nice) for nice in _NICE_SECONDS if nice >= least), _nice_step(least / _DAY) * _DAY)


def short_count(value: float) -> str:
    """Format as `1,200`, `45k` or `1.5M`."""
    if abs(value) >= _BEYOND_UNITS:
        return f"{value:.4g}"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.4g}{unit}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def sparkline(values: Sequence[float], columns: int) -> str:
    """Draw a series in one line. A gap is a space."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    low, half = min(finite), max(finite) / 2 - min(finite) / 2 or 1.0  # the full range may overflow
    columns = min(columns, len(values))
    parts = [values[i * len(values) // columns : (i + 1) * len(values) // columns] for i in range(columns)]
    return "".join(_block([(value / 2 - low / 2) / half for value in part if math.isfinite(value)]) for part in parts)


def _block(shares: list[float]) -> str:
    return _BLOCKS[round(sum(shares) / len(shares) * (len(_BLOCKS) - 1))] if shares else " "
