"""The inputs of rules (points, lines, ticks), their results (alarms), and how points are read from metric files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from labwright.domain.metrics.points import as_number, as_step, as_time
from labwright.files import complete_lines

_BLOCK = 256 << 10  # bytes that are parsed line by line at a time: about 10 ms
_SEARCHED = 16 << 20  # in a flood, the rest is only searched for NaN, infinity and watched metrics
_WATCHED_LINES = 2000  # per search: a rare metric is seen completely, a flood of one metric is not


@dataclass(frozen=True, slots=True)
class MetricPoint:
    key: str
    step: int
    time: float
    value: float


@dataclass(frozen=True, slots=True)
class OutputLine:
    text: str
    time: float


@dataclass(frozen=True, slots=True)
class Disk:
    folder: str  # a folder on it
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class Tick:
    """The state of the run every few seconds."""

    time: float
    quiet_seconds: float  # since the last output or metric
    disks: tuple[Disk, ...]


@dataclass(frozen=True, slots=True)
class Alarm:
    rule: str
    message: str
    key: str = ""
    severity: str = "warning"
    choices: tuple[str, ...] = ("ignore", "stop", "rerun")


class PointRule(Protocol):
    def feed(self, point: MetricPoint, /) -> Alarm | None: ...


class TickRule(Protocol):
    def feed(self, tick: Tick, /) -> Alarm | None: ...


class LineRule(Protocol):
    def feed(self, line: OutputLine, /) -> Alarm | None: ...


class MetricTail:
    """Follow all metric files of a run, so that rules see every source.

    `watched` are the metrics that the project's own rules name, with wildcards.
    """

    def __init__(self, folder: str, attempt: int, watched: Iterable[str] = ()) -> None:
        self._folder = folder
        self._attempt = attempt
        # Finds a key in a line by its text before the first wildcard.
        prefixes = {json.dumps(re.split(r"[*?[]", name)[0])[:-1].encode() for name in watched}
        self._watched = re.compile(b"|".join(map(re.escape, sorted(prefixes)))) if prefixes else None
        self._positions: dict[str, int] = {}
        self._foreign: set[str] = set()  # files of other attempts

    def names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self._folder) if name.endswith(".jsonl")]
        except FileNotFoundError:
            return []

    @property
    def bytes_seen(self) -> int:
        return sum(self._positions.values())

    def new_points(self) -> Iterator[MetricPoint]:
        """Yield new points, a bounded part of each file at a time."""
        for name in self.names():
            path = f"{self._folder}/{name}"
            position = self._positions.get(name, 0)
            if name in self._foreign or os.path.getsize(path) == position:
                continue
            lines, end = complete_lines(path, position, _BLOCK)
            if position == 0 and lines and self._is_foreign(lines[0]):
                self._foreign.add(name)
                continue
            for line in lines:
                yield from points_in(line)
            self._positions[name] = yield from self._catch_up(path, end)

    def _is_foreign(self, header: bytes) -> bool:
        try:
            return bool(json.loads(header).get("attempt", self._attempt) != self._attempt)
        except (ValueError, AttributeError):
            return False

    def _catch_up(self, path: str, position: int) -> Generator[MetricPoint, None, int]:
        """Skip what came too fast to be checked point by point, except NaN, infinity and watched metrics."""
        goal = os.path.getsize(path) - _BLOCK
        while goal > position + _BLOCK:
            lines, end = complete_lines(path, position, min(_SEARCHED, goal - position))
            if end == position:
                return position  # the line has no end yet
            for line in self._selected(lines):
                yield from points_in(line)
            position = end
        return position

    def _selected(self, lines: list[bytes]) -> Iterator[bytes]:
        room = _WATCHED_LINES if self._watched else 0
        for line in lines:
            if b"NaN" in line or b"Infinity" in line:
                yield line
            elif room and self._watched and self._watched.search(line):
                room -= 1
                yield line


def points_in(line: bytes) -> Iterator[MetricPoint]:
    """Yield the points of one line of a metric file. Skip lines that hold none; the server reports broken ones."""
    try:
        entry = json.loads(line)
        for record in entry["lines"] if "once" in entry else [entry]:
            numbers = record["m"].items()
            step, time = as_step(record.get("s")), as_time(record.get("t"))
            if step is None or time is None:
                continue
            for key, value in numbers:
                number = as_number(value)
                if number is not None:
                    yield MetricPoint(key, step, time, number)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
