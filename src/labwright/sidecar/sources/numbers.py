"""Which numbers a JSON object holds: its step, its time, and every number by its path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from labwright.domain.metrics.points import as_number, as_step

EPOCH = "epoch"
_STEPS = ("step", "global_step", "_step", "iteration", "iter", EPOCH)
_TIMES = ("_timestamp", "timestamp", "ts", "time")
_OF_A_LOG = ("msg", "message", "level", "levelname", "event")
_DEPTH = 4


@dataclass(slots=True)
class Numbers:
    step: int | None = None
    time: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def numbers_in(
    record: dict[str, Any], since: float, until: float, *, meant: bool = False, has_epochs: bool = False
) -> Numbers | None:
    """None for what is no line of metrics, such as a structured log's; `since` and `until` tell a time from a span.

    Where somebody said that these are metrics (`meant`), each that is no number is told. Where epochs are a metric
    (`has_epochs`), steps are finer than those: an epoch alone would be the step of another line.
    """
    found = Numbers()
    used = {_take_step(record, found), _take_time(record, found, since, until)}
    if found.step is None and any(isinstance(record.get(word), str) for word in _OF_A_LOG):
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
        if name != EPOCH or not isinstance(value, float):  # half an epoch is no step, and no mistake either
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
