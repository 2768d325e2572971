"""Feed the bytes of an output in order and get its metrics, its progress and names that may be metrics."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from labwright.sidecar.printed.line import NUMBER, RANK, SPLIT_WORD, Pair, Reading, number_of, read_line
from labwright.sidecar.printed.table import Box, Row, Table, header_in
from labwright.sidecar.printed.vocabulary import (
    COMPANION,
    COMPANIONS,
    EPOCH_RANK,
    FOLD_RANK,
    METRIC,
    METRICS,
    POSITION_RANK,
    QUALIFIER,
    SPLITS,
    STEP_RANK,
    UNKNOWN,
    is_metric_word,
    words_of,
)

_DIGITS = b"0123456789"
_LONGEST_LINE = 4096
_MOST_SHAPES = 4096
_MOST_HELD = 20
_EVIDENCE = 3
_MOST_CANDIDATES = 200
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x08\ufeff]")
_BOX_EDGE = re.compile(r"^\s*[│┃├└┌╰╭]\s?|[│┃]\s*$")
_HEADING = re.compile(
    r"\W*(?:\w+\s)?(?:epoch|epoche|época|époque|fold|iteration|round)[\s:#\[(]*\d+(?:\s*(?:/|of)\s*\d+)?\W*$",
    re.IGNORECASE,
)
_SECTION = re.compile(r"\W*(?:\w+\s){0,2}\w+\W*[:=*#-]\W*$")
_REMAINING = re.compile(r"<(?:(\d+):)?(\d+):(\d\d)[,\]]")
_KNOWN_WORDS = METRICS | SPLITS | frozenset(STEP_RANK) | {"metric", "epoch", "lr", "value"}


_ROOTS = frozenset(word.rstrip("0123456789").encode() for word in _KNOWN_WORDS | COMPANIONS)
_ROOTS |= {root.split(b"_")[-1] for root in _ROOTS}
_LOWER = bytes(byte if byte > 127 else ord(chr(byte).lower()) if chr(byte).isalpha() else 32 for byte in range(256))
_CASE = bytes(65 if 65 <= byte <= 90 else 97 if 97 <= byte <= 122 else 32 for byte in range(256))
_EMPTY_CELL = re.compile(rb"[|,\t]\s*[|,\t]")


def _is_plain(line: bytes) -> bool:
    """Return whether no word of this line can name a metric, a step or a part of the data. This must be cheap."""
    if not _ROOTS.isdisjoint(line.translate(_LOWER).split()):
        return False
    if not line.isascii() or b"%|" in line or b"@" in line or b"aA" in line.translate(_CASE):
        return False
    return not (b"|" in line or b"\t" in line or line.count(b",") > 1) or not _EMPTY_CELL.search(line)


class Point(NamedTuple):
    key: str
    step: int | None
    value: float


class Progress(NamedTuple):
    done: int
    total: int
    unit: str
    remaining_seconds: int | None = None  # as a progress bar prints it


class Candidate(NamedTuple):
    key: str
    seen: int  # how often
    last: float
    line: str


class _Missing:
    """Marks a shape that was not seen before."""


_MISSING = _Missing()


class PrintedReader:
    """Read metrics from an output, line by line.

    Lines of the same shape, which is the line without its digits, are parsed once. What the parser learned about a
    shape is kept: which number belongs to which key, and which one is the step.
    """

    def __init__(self) -> None:
        self._half = b""
        self._shapes: dict[bytes, Reading | None] = {}
        self._points: list[Point] = []
        self._table: Table | None = None
        self._box: Box | None = None
        self._heading: tuple[int | None, int | None] = (None, None)  # epoch and its total
        self._under_heading: set[str] = set()
        self._section = ""
        self._split = ""
        self._fold = 0
        self._process: int | None = None
        self._other_processes: list[tuple[int, bytes]] = []
        self._has_fractions = False
        self._kinds: dict[str, str] = {}
        self._counters: dict[int, tuple[int, int, int]] = {}  # by rank of the step: last, offset, outer counter
        self._bar: tuple[object, list[Point]] = (None, [])
        self._unproven: dict[str, list[Point]] = {}
        self._proven: set[str] = set()
        self._examples: dict[str, str] = {}
        self._outer: Progress | None = None
        self._inner: Progress | None = None
        self._bar_line = ""
        self._bar_total = ""

    def feed(self, data: bytes) -> list[Point]:
        """Return the points of all lines that are complete now."""
        lines = (self._half + data).split(b"\n")
        self._half = lines.pop()
        if len(self._half) > 1 << 20:
            self._half = self._half[-_LONGEST_LINE:]
        shapes = self._shapes
        for line in lines:
            if b"\r" in line:
                self._redraws(line)
                continue
            if not (self._table or self._box):
                shape = line.translate(None, _DIGITS)
                reading = shapes.get(shape, _MISSING)
                if reading is _MISSING and _is_plain(line[:_LONGEST_LINE]):
                    self._remember(shape, None)
                    continue
                if reading is None:
                    continue
            self._take(line, False)
        return self._drain()

    def read(self, line: bytes, *, is_redrawn: bool = False) -> list[Point]:
        """Return the points of one line. `is_redrawn` says that a carriage return ends it."""
        self._take(line, is_redrawn)
        return self._drain()

    def close(self) -> list[Point]:
        if self._half:
            self._redraws(self._half)
            self._half = b""
        if self._process is None:
            first = self._other_processes[0][0] if self._other_processes else 0
            self._adopt(first)
        self._end_box()
        self._end_bar()
        return self._drain()

    @property
    def progress(self) -> Progress | None:
        """The outermost counter that the output shows: epochs, else steps, else a progress bar."""
        shown = self._outer or self._inner
        match = _REMAINING.search(self._bar_line) if shown and shown is self._inner else None
        if not shown or not match:
            return shown
        hours, minutes, seconds = (int(group or 0) for group in match.groups())
        return shown._replace(remaining_seconds=hours * 3600 + minutes * 60 + seconds)

    def candidates(self) -> list[Candidate]:
        """Return names that look like metrics and were not taken."""
        return [
            Candidate(key, len(points), points[-1].value, self._examples.get(key, ""))
            for key, points in self._unproven.items()
            if key not in self._proven and len(points) > 1
        ]

    def _drain(self) -> list[Point]:
        points, self._points = self._points, []
        return points

    def _redraws(self, line: bytes) -> None:
        parts = [part for part in line.split(b"\r") if part.strip()]
        for part in parts[:-1]:
            self._take(part, True)
        if parts:
            self._take(parts[-1], False)

    def _take(self, line: bytes, is_redrawn: bool) -> None:
        if len(line) > _LONGEST_LINE:
            line = line[:_LONGEST_LINE]
        shape = line.translate(None, _DIGITS)
        reading = self._shapes.get(shape, _MISSING)
        text = ""
        if self._table or self._box or reading is _MISSING:
            if not (self._table or self._box) and _is_plain(line):
                self._remember(shape, None)
                return
            text = self._text(line)
            if self._structured(text):
                return
            if reading is _MISSING:
                reading = self._parse(text, len(shape) < len(line))
                if not self._table:  # a header must be seen each time
                    self._remember(shape, reading)
        if isinstance(reading, Reading):
            self._apply(reading, text or self._text(line), line, is_redrawn)

    def _remember(self, shape: bytes, reading: Reading | None) -> None:
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
        self._shapes[shape] = reading

    @staticmethod
    def _text(line: bytes) -> str:
        text = line.decode("utf-8", "replace")
        if "\x1b" in text or "\x08" in text or text[:1] == "\ufeff":
            text = _ESCAPES.sub("", text)
        return text.rstrip()

    def _structured(self, text: str) -> bool:
        """Take a line of a table or of a box. Return whether it was one."""
        if self._table:
            row = self._table.row(text)
            if row:
                self._add_row(row)
                return True
            self._table = None
        if self._box:
            if self._box.add(text):
                return True
            self._end_box()
        edge = text.lstrip()[:1]
        if edge and edge in "|│┃":
            box = Box()
            if box.add(text):
                self._box = box
                return True
        return False

    def _end_box(self) -> None:
        if self._box:
            row, self._box = self._box.row(), None
            self._add_row(row)

    def _parse(self, text: str, has_digits: bool) -> Reading | None:
        """Return what lines of this shape say, or None if they say nothing."""
        if not has_digits and (len(text) > 200 or (len(text) > 60 and not re.search(r"\s\s|[|,\t│┃]", text))):
            return None
        words = words_of(text)
        known = not _KNOWN_WORDS.isdisjoint(words) or "@" in text or any(is_metric_word(word) for word in words)
        if not known and not has_digits:
            return None
        if known:
            table = header_in(text)
            if table:
                self._end_bar()
                self._table = table
                return None
        if not has_digits:
            split = SPLIT_WORD.findall(text)
            self._section = split[0].lower() if split and _SECTION.match(text) else ""
            return None if not self._section else Reading(0, split=self._section, star=True)
        if not known and "%|" not in text and "━" not in text:
            return None
        bare = _BOX_EDGE.sub("  ", text) if text.lstrip()[:1] in "│┃├└" else text
        reading = read_line(bare)
        if reading.step < 0 and not any(pair.kind in (METRIC, COMPANION) for pair in reading.pairs):
            reading = reading._replace(pairs=())  # an unknown name counts only beside a step
        is_heading = reading.step >= 0 and not reading.pairs and _HEADING.match(reading.text) is not None
        if not (reading.pairs or is_heading or reading.bar[1] >= 0 or reading.step_total >= 0 or reading.fraction):
            return None
        return reading if not is_heading else reading._replace(star=True)

    def _apply(self, reading: Reading, text: str, line: bytes, is_redrawn: bool) -> None:
        if reading.size == 0:
            self._section = reading.split
            return
        if reading.comma:
            text = text.replace(",", ".")
        numbers = NUMBER.findall(text)
        if len(numbers) != reading.size:
            bare = read_line(text)
            if not bare.pairs:
                return
            reading, numbers = bare, NUMBER.findall(text)
        if reading.has_process and not self._is_shown(text, line):
            return
        self._has_fractions |= reading.fraction
        self._note_progress(reading, numbers, text)
        if not reading.pairs:
            self._note_heading(reading, numbers)
            return
        step, kind = self._step_of(reading, numbers)
        is_bar = reading.bar[0] >= 0
        if not is_bar:
            self._end_bar()
        points = self._points_of(reading, numbers, step, kind, text)
        if is_bar:
            self._add_bar(reading, numbers, step, points, is_redrawn)
        else:
            self._points += points

    def _is_shown(self, text: str, line: bytes) -> bool:
        """Return whether this process counts: rank 0, or the first one if rank 0 prints nothing."""
        match = RANK.search(text)
        process = next((int(number) for number in match.groups() if number is not None), 0) if match else 0
        if self._process is None:
            if process > 0:
                self._other_processes.append((process, line))
                if len(self._other_processes) > _MOST_HELD:
                    self._adopt(self._other_processes[0][0])
                return False
            self._process = max(0, process)
            self._other_processes = []
        return process == self._process or process < 0

    def _adopt(self, process: int) -> None:
        held, self._other_processes = self._other_processes, []
        self._process = process
        for number, line in held:
            if number == process:
                self._take(line, False)

    def _note_progress(self, reading: Reading, numbers: list[str], text: str) -> None:
        if reading.step_total >= 0:
            done, total = numbers[reading.step], numbers[reading.step_total]
            if done.isdigit() and total.isdigit() and int(total):
                unit = "epoch" if reading.rank == EPOCH_RANK else "step"
                if not self._outer or unit == "epoch" or self._outer.unit == "step":
                    self._outer = Progress(int(done), int(total), unit)
        if reading.bar[1] >= 0:
            done, total = numbers[reading.bar[0]], numbers[reading.bar[1]]
            if done.isdigit() and total.isdigit():
                self._inner, self._bar_line = Progress(int(done), int(total), "it"), text

    def _note_heading(self, reading: Reading, numbers: list[str]) -> None:
        if not reading.star or reading.step < 0:
            return
        value = int(numbers[reading.step])
        if reading.rank == FOLD_RANK:
            self._fold = value
        elif reading.rank >= EPOCH_RANK:
            total = int(numbers[reading.step_total]) if reading.step_total >= 0 else None
            self._end_bar()
            self._heading, self._section = (value, total), ""
            self._under_heading.clear()

    def _step_of(self, reading: Reading, numbers: list[str]) -> tuple[int | None, str]:
        """Return the step and its kind: step, epoch, inside (many lines of one epoch), heading or nothing."""
        if reading.step < 0:
            if self._heading[0] is None or self._has_fractions:
                return None, ""
            return self._heading[0], "heading"
        value = int(numbers[reading.step])
        if reading.rank == POSITION_RANK and self._heading[0] is not None and not self._has_fractions:
            is_whole = numbers[reading.step] == numbers[reading.step_total]
            return (self._heading[0], "heading") if is_whole else (None, "inside")
        if reading.rank == EPOCH_RANK:
            evaluates = reading.split.lower()[:3] in ("val", "tes", "eva", "dev")
            if self._has_fractions or (reading.inside and not evaluates):
                return None, "inside"
            return self._continued(reading.rank, value, self._fold, None), "epoch"
        if reading.rank < FOLD_RANK:
            return None, "inside"
        outer = int(numbers[reading.epoch]) if reading.epoch >= 0 else 0
        total = int(numbers[reading.step_total]) if reading.step_total >= 0 else None
        return self._continued(reading.rank, value, outer, total), "step"

    def _continued(self, rank: int, value: int, outer: int, total: int | None) -> int:
        """Return a step that counts on where the printed one restarts in each epoch or fold."""
        last, offset, before = self._counters.get(rank, (-1, 0, outer))
        if outer != before and value <= last:
            offset += total or last + (value == 0)
        self._counters[rank] = (value, offset, outer)
        return value + offset

    def _points_of(self, reading: Reading, numbers: list[str], step: int | None, kind: str, text: str) -> list[Point]:
        prefix = f"{reading.worker[0]}{numbers[reading.worker[1]]}_" if reading.worker[1] >= 0 else ""
        section = ""
        if reading.split:
            self._split = reading.split.lower()
            self._section = ""
        elif kind in ("step", "epoch"):
            self._section = self._split = ""
        else:
            section = self._split if reading.star else self._section
        has_metric = any(pair.kind == METRIC for pair in reading.pairs)
        points: list[Point] = []
        for pair in reading.pairs:
            value = _value(pair, numbers)
            if value is None or (value != value and not pair.strong and not kind):
                continue
            key = prefix + (f"{section}_{pair.key}" if section and SPLITS.isdisjoint(words_of(pair.key)) else pair.key)
            at, key = self._placed(key, step, kind)
            point = Point(key, at, value)
            if self._is_taken(pair, point, numbers, kind, has_metric, text):
                points += self._unproven.pop(key, ()) if key in self._proven and key in self._unproven else ()
                points.append(point)
        return points

    def _placed(self, key: str, step: int | None, kind: str) -> tuple[int | None, str]:
        if kind == "heading":
            if key in self._under_heading:
                return None, key
            self._under_heading.add(key)
            return step, key
        if kind:
            known = self._kinds.setdefault(key, kind)
            if kind == "epoch" and known in ("step", "inside"):
                return step, f"epoch_{key}"
        return step, key

    def _is_taken(self, pair: Pair, point: Point, numbers: list[str], kind: str, has_metric: bool, text: str) -> bool:
        if pair.kind == METRIC:
            return True
        if pair.kind == COMPANION:
            return bool(kind) or has_metric
        token = numbers[pair.at]
        if pair.kind == QUALIFIER:
            words = words_of(pair.key)
            return kind in ("step", "epoch") and "." in token and (words[-1] in SPLITS or words[-1] == "value")
        if pair.kind != UNKNOWN or kind not in ("step", "epoch"):
            return False
        return self._is_proven(point, text)

    def _is_proven(self, point: Point, text: str) -> bool:
        """Return whether an unknown name repeated with changing values beside a step, so that it is a metric."""
        if point.key in self._proven:
            return True
        if len(self._unproven) >= _MOST_CANDIDATES and point.key not in self._unproven:
            return False
        held = self._unproven.setdefault(point.key, [])
        self._examples.setdefault(point.key, text[:200])
        values = {old.value for old in held} | {point.value}
        has_fraction = any(math.isfinite(value) and not value.is_integer() for value in values)
        if len(held) + 1 >= _EVIDENCE and len(values) > 1 and has_fraction:
            self._proven.add(point.key)
            return True
        held.append(point)
        del held[:-_MOST_HELD]
        return False

    def _add_bar(
        self, reading: Reading, numbers: list[str], step: int | None, points: list[Point], is_redrawn: bool
    ) -> None:
        """Keep the last state of a bar: redraws count once."""
        done, total = numbers[reading.bar[0]], numbers[reading.bar[1]] if reading.bar[1] >= 0 else ""
        state: object = step if step is not None else (done, total)
        if self._bar[0] != state:
            self._end_bar()
        if step is not None and self._heading[0] is not None and self._bar_total != total:
            self._end_bar()
        self._bar = (state, points)
        self._bar_total = total
        if not is_redrawn:
            self._end_bar()
            if done == total and reading.step < 0 and self._heading[0] is not None:
                self._under_heading.clear()
                if self._heading[0] == self._heading[1]:
                    self._heading = (None, None)

    def _end_bar(self) -> None:
        _, points = self._bar
        self._bar = (None, [])
        self._points += points

    def _add_row(self, row: Row) -> None:
        step = int(row.step) if row.step else None
        for key, kind, text in row.cells:
            value = number_of(text.rstrip("%"))
            point = Point(key, step, value)
            if kind in (METRIC, COMPANION) or (step is not None and kind == UNKNOWN and self._is_proven(point, key)):
                self._points += self._unproven.pop(key, ())
                self._points.append(point)


def _value(pair: Pair, numbers: list[str]) -> float | None:
    value = number_of(numbers[pair.at])
    if pair.total < 0:
        return value
    total = number_of(numbers[pair.total])
    return value / total if total else None
