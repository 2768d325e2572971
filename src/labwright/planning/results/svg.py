"""A chart as SVG: axes, lines with error bars or bands, a level to compare with, a legend. Text is always escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from labwright.planning.results.scales import Scale

WIDTH, HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 24, 78, 58
_COLOURS = ("#0060a8", "#c44601", "#00805f", "#8a3f8f", "#946200", "#3b7fb0", "#555555", "#b03060")
_INK, _SOFT, _GRID = "#1f2328", "#59636e", "#e3e7eb"
_LEVEL = f'stroke="{_SOFT}" stroke-width="1.5" stroke-dasharray="6 4"'
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_LETTER = 6.6  # px, about, of the legend's letters
_ROW, _ROWS = 17, 2  # px of a row of the legend, and how many there is room for as it is
_TITLE_LENGTH, _NAME_LENGTH = 68, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: float
    y: float
    spread: float = 0.0  # above and below
    best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    name: str
    points: Sequence[Point]
    joined: bool = True
    band: bool = False  # the spread as an area, for many points; else as bars
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    title: str
    x_name: str
    y_name: str
    x: Scale
    y: Scale
    lines: Sequence[Line]
    level: tuple[str, float] | None = None  # a value to compare with, across the whole picture

    def svg(self) -> str:
        rows = self._legend_rows()
        more = max(0, len(rows) - _ROWS) * _ROW
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + more}" width="{WIDTH}" '
            f'height="{HEIGHT + more}" role="img" font-family="{_FONT}" font-size="12" fill="{_INK}">',
            f"<title>{_text(self.title, 300)}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT + more}" fill="#ffffff"/>',
            _words(_LEFT, 26, self.title, _TITLE_LENGTH, size=15, weight=600),
            *(part for index, row in enumerate(rows) for part in _legend_row(row, 46 + index * _ROW)),
            f'<g transform="translate(0 {more})">',
            *self._axes(),
            *self._level(),
            *(part for index, line in enumerate(self.lines) for part in self._line(line, _colour(index))),
            "</g>",
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _px(self, value: float) -> float:
        return round(_LEFT + self.x.at(value) * (WIDTH - _LEFT - _RIGHT), 2)

    def _py(self, value: float) -> float:
        return round(HEIGHT - _BOTTOM - self.y.at(value) * (HEIGHT - _TOP - _BOTTOM), 2)

    def _axes(self) -> Iterator[str]:
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        for value, words in self.y.ticks:
            y = self._py(value)
            yield f'<path d="M{_LEFT} {y}H{right}" stroke="{_GRID}"/>'
            yield _words(_LEFT - 8, y + 4, words, 12, anchor="end", colour=_SOFT)
        for x, words in self._x_ticks():
            yield f'<path d="M{x} {bottom}v5" stroke="{_SOFT}"/>'
            yield _words(x, bottom + 20, words, 18, anchor="middle", colour=_SOFT)
        yield f'<path d="M{_LEFT} {_TOP - 6}V{bottom}H{right}" fill="none" stroke="{_SOFT}"/>'
        more = " (logarithmic)" if self.x.log else ""
        yield _words((_LEFT + right) / 2, HEIGHT - 16, f"{_cut(self.x_name, 60)}{more}", 80, anchor="middle")
        middle = (_TOP + bottom) / 2
        name = _text(self.y_name, 40)
        yield f'<text transform="translate(18 {middle:g}) rotate(-90)" text-anchor="middle">{name}</text>'

    def _x_ticks(self) -> Iterator[tuple[float, str]]:
        """Those whose words do not run into the ones before."""
        free_from = 0.0
        for value, words in self.x.ticks:
            x, half = self._px(value), len(words) * _LETTER / 2
            if x - half >= free_from:
                yield x, words
                free_from = x + half + 6

    def _level(self) -> Iterator[str]:
        if self.level is not None:
            y = self._py(self.level[1])
            yield f'<path d="M{_LEFT} {y}H{WIDTH - _RIGHT}" {_LEVEL}/>'

    def _line(self, line: Line, colour: str) -> Iterator[str]:
        places = [(self._px(point.x), self._py(point.y)) for point in line.points]
        if line.band and len(places) > 1:
            yield self._band(line.points, colour)
        if line.joined and len(places) > 1:
            path = " ".join(f"{x},{y}" for x, y in places)
            dashes = ' stroke-dasharray="7 4"' if line.dashed else ""
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
        if line.band:
            return
        for point, (x, y) in zip(line.points, places, strict=True):
            yield from self._bar(point, x, colour)
            yield f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>'
            if point.best:
                yield f'<circle cx="{x}" cy="{y}" r="8" fill="none" stroke="{colour}" stroke-width="1.5"/>'

    def _bar(self, point: Point, x: float, colour: str) -> Iterator[str]:
        if point.spread:
            top, bottom = self._py(point.y + point.spread), self._py(point.y - point.spread)
            yield f'<path d="M{x} {top}V{bottom}M{x - 5} {top}h10M{x - 5} {bottom}h10" stroke="{colour}" fill="none"/>'

    def _band(self, points: Sequence[Point], colour: str) -> str:
        above = [f"{self._px(p.x)},{self._py(p.y + p.spread)}" for p in points]
        below = [f"{self._px(p.x)},{self._py(p.y - p.spread)}" for p in reversed(points)]
        return f'<polygon points="{" ".join(above + below)}" fill="{colour}" fill-opacity="0.15"/>'

    def _legend_rows(self) -> list[list[tuple[str, str]]]:
        """Below the title, as many as it takes; what does not fit into one begins the next."""
        rows: list[list[tuple[str, str]]] = [[]]
        for entry in self._entries():
            if rows[-1] and sum(map(_entry_width, [*rows[-1], entry])) > WIDTH - _LEFT - _RIGHT:
                rows.append([])
            rows[-1].append(entry)
        return rows

    def _entries(self) -> Iterator[tuple[str, str]]:
        """Names, each with its mark, drawn from 0 to 18 on a line at 0."""
        for index, line in enumerate(self.lines):
            if line.name:
                dashes = ' stroke-dasharray="7 4"' if line.dashed else ""
                mark = f'<path d="M0 0h18" stroke="{_colour(index)}" stroke-width="3"{dashes}/>'
                yield _cut(line.name, _NAME_LENGTH), mark
        if self.level is not None:
            yield _cut(self.level[0], _NAME_LENGTH), f'<path d="M0 0h18" {_LEVEL}/>'
        if any(point.best for line in self.lines for point in line.points):
            yield "the best", f'<circle cx="9" r="6" fill="none" stroke="{_SOFT}" stroke-width="1.5"/>'


def _legend_row(row: Sequence[tuple[str, str]], y: float) -> Iterator[str]:
    x = float(_LEFT)
    for name, mark in row:
        yield f'<g transform="translate({x:g} {y - 4})">{mark}</g>'
        yield _words(x + 24, y, name, _NAME_LENGTH)
        x += _entry_width((name, mark))


def _entry_width(entry: tuple[str, str]) -> float:
    return 26 + len(entry[0]) * _LETTER + 16


def _colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def _text(words: str, length: int) -> str:
    """Letters that a picture cannot show, or that turn the direction of the others, are left out."""
    return escape(_cut("".join(letter if letter.isprintable() else " " for letter in words), length))


def _cut(words: str, length: int) -> str:
    """What is left out must be seen to be: half a number is another number."""
    return words if len(words) <= length else f"{words[: length - 1]}…"


def _words(
    x: float, y: float, words: str, length: int, *, anchor: str = "", colour: str = "", size: int = 0, weight: int = 0
) -> str:
    given = {"text-anchor": anchor, "fill": colour, "font-size": size or "", "font-weight": weight or ""}
    attributes = "".join(f' {name}="{value}"' for name, value in given.items() if value)
    return f'<text x="{x:g}" y="{y:g}"{attributes}>{_text(words, length)}</text>'
