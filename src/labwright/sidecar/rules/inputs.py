"""What rules are fed, and what they answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from labwright.domain.metrics.points import as_number, as_step, as_time
from labwright.files import complete_lines


@dataclass(frozen=True, slots=True)
class MetricPoint:
    key: str
    step: int
    time: float
    value: float


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line of the output."""

    text: str
    time: float


@dataclass(frozen=True, slots=True)
class Disk:
    folder: str  # one that lies on it
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class Tick:
    """How things stand every now and then."""

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


_BLOCK = 256 << 10  # what is read line by line at a time: about 10 ms
_SEARCHED = 16 << 20  # under a flood the rest is only searched for what is no number, and for what people watch
_WATCHED_LINES = 2000  # of what is searched at a time: a rare metric among others is seen whole, a flood of it is not


class MetricTail:
    """`watched` are the metrics that the project's own rules name, with wildcards."""

    def __init__(self, folder: str, attempt: int, watched: Iterable[str] = ()) -> None:
        self._folder = folder
        self._attempt = attempt
        self._watched = _any_of(watched)
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
        """Some of each file at a time, so that nobody is kept waiting; after a flood its end is left for the next."""
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
        """Leave out what came too fast to be judged point by point, but for NaN, infinity and what is watched."""
        goal = os.path.getsize(path) - _BLOCK
        while goal > position + _BLOCK:
            lines, end = complete_lines(path, position, min(_SEARCHED, goal - position))
            if end == position:
                return position  # a line that has no end yet
            for line in self._worth_a_look(lines):
                yield from points_in(line)
            position = end
        return position

    def _worth_a_look(self, lines: list[bytes]) -> Iterator[bytes]:
        room = _WATCHED_LINES if self._watched else 0
        for line in lines:
            if b"NaN" in line or b"Infinity" in line:
                yield line
            elif room and self._watched and self._watched.search(line):
                room -= 1
                yield line


def _any_of(names: Iterable[str]) -> re.Pattern[bytes] | None:
    """Finds, in a line, a key that begins as one of them does before its first wildcard."""
    begins = {json.dumps(re.split(r"[*?[]", name)[0])[:-1].encode() for name in names}
    return re.compile(b"|".join(map(re.escape, sorted(begins)))) if begins else None


def points_in(line: bytes) -> Iterator[MetricPoint]:
    try:
        entry = json.loads(line)
        entries = entry["lines"] if "once" in entry else [entry]
        for one in entries:
            yield from _points_of(one)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return  # not about numbers; the server says what it cannot read


def _points_of(entry: dict[str, Any]) -> Iterator[MetricPoint]:
    numbers = entry["m"].items()
    step, time = as_step(entry.get("s")), as_time(entry.get("t"))
    if step is None or time is None:
        return
    for key, value in numbers:
        number = as_number(value)
        if number is not None:
            yield MetricPoint(key, step, time, number)
