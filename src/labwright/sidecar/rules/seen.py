"""What rules are fed, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Point:
    key: str
    step: int
    time: float
    value: float


@dataclass(frozen=True, slots=True)
class Line:
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
    def feed(self, point: Point, /) -> Alarm | None: ...


class TickRule(Protocol):
    def feed(self, tick: Tick, /) -> Alarm | None: ...


class LineRule(Protocol):
    def feed(self, line: Line, /) -> Alarm | None: ...
