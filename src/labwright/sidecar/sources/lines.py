"""Whole lines of a growing file (half lines, progress bars, binary data, endless lines), and the numbers in JSON."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from labwright.domain.metrics.points import as_number, as_step

LONGEST = 1 << 20
EPOCH = "epoch"
_STEPS = ("step", "global_step", "_step", "iteration", "iter", EPOCH)
_TIMES = ("_timestamp", "timestamp", "ts", "time")
_LOG_FIELDS = ("msg", "message", "level", "levelname", "event")
_DEPTH = 4


class GrowingLines:
    """A line ends with a newline, or with a carriage return as in progress bars."""

    def __init__(self, path: str, position: int) -> None:
        self._path = path
        self.read_to = position
        self._half = b""
        self._too_long = False  # inside a line that is longer than the limit
        self._is_cut = False  # inside a line whose start was skipped

    def jump(self, position: int) -> None:
        self.read_to, self._half, self._too_long, self._is_cut = position, b"", False, True

    def read(self, limit: int, *, last: bool = False) -> Iterator[tuple[bytes | None, int]]:
        """Yield lines with the position after each; None for a too long line. `last` also yields half a line."""
        block = b""
        with contextlib.suppress(FileNotFoundError), open(self._path, "rb") as file:
            file.seek(self.read_to)
            block = file.read(max(0, limit))
        position = self.read_to - len(self._half)
        self.read_to += len(block)
        self._half, pieces = b"", (self._half + block).splitlines(keepends=True)
        if pieces and pieces[-1][-1:] not in (b"\n", b"\r"):
            self._half = pieces.pop()
        for piece in pieces:
            position += len(piece)
            if self._is_cut:
                self._is_cut = self._too_long = False
            elif self._too_long or len(piece) > LONGEST:
                self._too_long = False
                yield None, position
            else:
                yield piece, position
        if len(self._half) > LONGEST:
            self._half, self._too_long = b"", True
        if last and not self._is_cut and (self._half or self._too_long) and len(block) < limit:
            yield (None if self._too_long else self._half), self.read_to
            self._half, self._too_long = b"", False


@dataclass(slots=True)
class Numbers:
    step: int | None = None
    time: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def numbers_in(
    record: dict[str, Any], since: float, until: float, *, meant: bool = False, has_epochs: bool = False
) -> Numbers | None:
    """Return step, time and numbers of a JSON object; None if it is not a line of metrics, such as a log message.

    `since` and `until` tell a time of day from a duration. With `meant` the object is known to hold metrics, so each
    value that is not a number is refused. With `has_epochs` epochs are a metric and not the step.
    """
    found = Numbers()
    used = {_take_step(record, found), _take_time(record, found, since, until)}
    if found.step is None and any(isinstance(record.get(word), str) for word in _LOG_FIELDS):
        return None
    for key, value in _flat(record, "", _DEPTH):
        number = as_number(value)
        if key in used or value is None:
            continue
        if number is None:
            found.refused[key] = "not a number"
        else:
            found.values[key] = number
    if "(a line)" in found.refused:
        found.values.clear()
    if has_epochs and EPOCH in used and found.values and found.step is not None:
        found.values[EPOCH], found.step = float(found.step), None
    return found if found.values or (found.refused and (meant or found.step is not None)) else None


def _take_step(record: dict[str, Any], found: Numbers) -> str:
    for name in _STEPS:
        if name not in record:
            continue
        value = record[name]
        found.step = as_step(int(value) if isinstance(value, float) and value.is_integer() else value)
        if found.step is not None:
            return name
        if name != EPOCH or not isinstance(value, float):  # half an epoch is not a step, but not an error either
            found.refused["(a line)"] = f"its {name} is not a whole number"
            found.step = 0
            return name
    return ""


def _take_time(record: dict[str, Any], found: Numbers, since: float, until: float) -> str:
    for name in _TIMES:
        value = record.get(name)
        if isinstance(value, int | float) and since - 60 <= value <= until + 60:
            found.time = float(value)
            return name
    return ""


def _flat(record: dict[str, Any], path: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if isinstance(value, dict) and depth > 1:
            yield from _flat(value, f"{path}{key}/", depth - 1)
        else:
            yield f"{path}{key}", value
