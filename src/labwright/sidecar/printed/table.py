"""Tables and boxes: a header line with rows below it, or rows of a name and a number."""

from __future__ import annotations

import re
from typing import NamedTuple

from labwright.sidecar.printed.vocabulary import (
    DENIED,
    METRIC,
    QUALIFIER,
    STEP,
    UNKNOWN,
    Name,
    is_metric_word,
    name_of,
    words_of,
)

_BAR_TAIL = re.compile(r":?\s*\d+%\s*(?:\||[━─]).*$")
_PIPES = re.compile(r"[|│┃║]")
_GAPS = re.compile(r"\s{2,}|\t")
_VALUE = re.compile(r"[-+]?(?:\d+(?:,\d{3})*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?$|[-+]?(?:nan|inf)$", re.IGNORECASE)
_MEASURE = re.compile(r"[-+]?[\d.]+(?:[a-zA-Z]+|/\d+)?$|[\d:]+$|-+$|[nN]o?n?e?$")
_HEADER_CELL = re.compile(r"[^\W\d](?!.*(?<![\w.@-])[-+]?\.?\d)[^=]{0,28}$|#$")
_RULE = re.compile(r"[^\w]*$")
_SUMMARY_ROWS = frozenset({"all", "overall", "macro avg", "micro avg", "weighted avg", "samples avg"})


class Row(NamedTuple):
    step: str | None
    cells: list[tuple[str, str, str]]  # key, kind, text of the number


class Table:
    """A header that was seen, with the meaning of each column."""

    def __init__(self, names: list[str], separator: str) -> None:
        self.names = names
        self.separator = separator
        self.columns = [_column(name) for name in names]
        ranks = [(column.rank, index) for index, column in enumerate(self.columns) if column.kind == STEP]
        self._step = max(ranks, key=lambda rank: rank[0])[1] if ranks else -1
        self.index_is_step = False
        lowered = [name.lower() for name in names]
        self._long = ("metric" in lowered and "value" in lowered) and (lowered.index("metric"), lowered.index("value"))
        self._label = ""

    def row(self, text: str) -> Row | None:
        """Return the numbers of a row, an empty row for a rule, or None if the table has ended."""
        text = _BAR_TAIL.sub("", text)
        if _RULE.match(text):
            return Row(None, []) if text.strip() else None
        cells = _cells(text, self.separator)
        if self._long:
            return self._long_row(cells)
        if self.separator == " ":
            return self._blank_row(text.split())
        if len(cells) != len(self.names):
            return None
        return self._numbers(cells)

    def _blank_row(self, cells: list[str]) -> Row | None:
        width = len(self.names)
        if len(cells) == 1 and name_of(cells[0]).kind == STEP:
            self.index_is_step = True
            return Row(None, [])
        if len(cells) == width and _VALUE.match(cells[-1]) and not _MEASURE.match(cells[0]) and self._step < 0:
            return self._labelled(cells)
        if len(cells) == width:
            return self._numbers(cells)
        values = 0
        while values < len(cells) and (_VALUE.match(cells[-1 - values]) or _MEASURE.match(cells[-1 - values])):
            values += 1
        if values == len(cells) == width + 1 and cells[0].isdigit():
            row = self._numbers(cells[1:])
            return row and Row(cells[0] if self.index_is_step else row.step, row.cells)
        return self._labelled(cells) if values and values < len(cells) else None

    def _labelled(self, cells: list[str]) -> Row | None:
        """Return the numbers of a row with a text before them, if it sums up the others; else an empty row."""
        first = next((index for index, cell in enumerate(cells) if _VALUE.match(cell)), len(cells))
        label, values = " ".join(cells[:first]), cells[first:]
        if is_metric_word(label.lower()) and values and "." in values[0]:
            return Row(None, [(label, METRIC, values[0])])
        if label.lower() not in _SUMMARY_ROWS or len(values) > len(self.names):
            return Row(None, []) if len(values) <= len(self.names) and first <= 3 else None
        found = []
        for column, value in zip(self.columns[len(self.columns) - len(values) :], values):  # noqa: B905 - Python 3.8
            if column.kind in (METRIC, UNKNOWN) and _VALUE.match(value):
                key = column.key if label.lower() in ("all", "overall") else f"{'_'.join(label.split())}_{column.key}"
                found.append((key, METRIC, value))
        return Row(None, found)

    def _numbers(self, cells: list[str]) -> Row | None:
        if not any(_VALUE.match(cell) for cell in cells):
            return None
        if self._step < 0 and cells[0] and not _MEASURE.match(cells[0]) and not _VALUE.match(cells[0]):
            return self._labelled(cells)
        step = None
        found = []
        for index, (column, cell) in enumerate(zip(self.columns, cells)):  # noqa: B905 - Python 3.8
            if index == self._step:
                step = cell.split("/")[0]
                if not step.isdigit():
                    return None
            elif not (_VALUE.match(cell) or _MEASURE.match(cell) or not cell):
                if column.kind in (METRIC, STEP):
                    return None
            elif column.kind not in (DENIED, STEP) and _VALUE.match(cell):
                found.append((column.key, METRIC, cell))
        return Row(step, found)

    def _long_row(self, cells: list[str]) -> Row | None:
        """Return the row of a table with one metric per line, whose name is in a cell."""
        if not self._long or len(cells) != len(self.names):
            return None
        metric, value = self._long
        self._label = cells[0] or self._label
        name = name_of(cells[metric])
        if name.kind not in (METRIC, UNKNOWN) or not _VALUE.match(cells[value]):
            return Row(None, [])
        return Row(None, [(f"{self._label}_{name.key}", METRIC, cells[value])])


def header_in(text: str) -> Table | None:
    """Return the table that this line starts, or None."""
    text = _BAR_TAIL.sub("", text)
    if "=" in text or ": " in text or len(text) > 300:
        return None
    if _PIPES.search(text):
        return _table(_cells(text, "|"), "|", 3)
    if "," in text:
        names = _cells(text, ",")
        return _table(names, ",", 2) if all(re.match(r"[\w/.@-]+$", name) for name in names) else None
    if "\t" in text.strip():
        return _table(_cells(text, "\t"), "\t", 2)
    names = [name for name in _GAPS.split(text.strip()) if name]
    if len(names) < 2:
        names = text.split()
        if len(names) < 3 or not all(re.match(r"[a-z_#][\w/.@]*$", name) for name in names):
            return None
        if name_of(names[0]).kind != STEP:
            return None
    return _table(names, " ", 2)


def _table(names: list[str], separator: str, least: int) -> Table | None:
    if len(names) < least or not all(not name or _HEADER_CELL.match(name) for name in names):
        return None
    table = Table(names, separator)
    lowered = [name.lower() for name in names]
    known = any(column.kind == METRIC for column in table.columns) or ("metric" in lowered and "value" in lowered)
    return table if known else None


def _column(text: str) -> Name:
    text = text.strip("() ")
    if "(" in text:
        text = text.split("(")[-1]
    if text == "#":
        return Name("#", STEP, rank=8)
    if text in ("P", "R"):
        return Name(text, METRIC)
    words = words_of(text)
    if "_".join(words) == "map50_95":
        return Name("map50_95", METRIC)
    name = name_of(text)
    return name._replace(kind=UNKNOWN) if name.kind == QUALIFIER else name


def _cells(text: str, separator: str) -> list[str]:
    if separator == "|":
        parts = [part.strip() for part in _PIPES.split(text.strip())]
        return parts[1:-1] if len(parts) > 2 and not parts[0] and not parts[-1] else parts
    return [part.strip() for part in text.strip().split(separator)]


class Box:
    """Rows of a name and a number between lines: the step may come after the metrics."""

    def __init__(self) -> None:
        self._section = ""
        self._skips = False
        self._cells: list[tuple[str, str, str]] = []
        self._step: tuple[int, str | None] = (0, None)

    def add(self, text: str) -> bool:
        """Take a line of the box. Return False if the line is not part of it."""
        cells = _cells(text, "|")
        if len(cells) != 2 or not _PIPES.match(text.strip()[:1]) or not cells[0]:
            return False
        if not cells[1]:
            self._section = cells[0] if cells[0].endswith("/") else ""
            self._skips = name_of(cells[0].rstrip("/")).kind == DENIED
            return True
        name = name_of(cells[0])
        if name.kind == STEP and cells[1].isdigit():
            self._step = max(self._step, (name.rank, cells[1]))
        elif _VALUE.match(cells[1]) and not self._skips and name.kind not in (DENIED, STEP, QUALIFIER):
            self._cells.append((f"{self._section}{name.key}", name.kind, cells[1]))
        return True

    def row(self) -> Row:
        return Row(self._step[1], self._cells)
