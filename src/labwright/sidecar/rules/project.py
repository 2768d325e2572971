"""The project's own rules, as `[[alerts]]` in labwright.toml says them; the server has checked and parsed them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from labwright.sidecar.rules.seen import Alarm, Point

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "is nan": lambda value, _: value != value,
}


@dataclass(slots=True)
class _State:
    since_step: int | None = None  # where the condition began to hold
    since_time: float = 0.0
    best: float | None = None
    said: bool = False


class ProjectRule:
    """`metric` may hold wildcards; each metric that matches is judged by itself."""

    def __init__(self, rule: dict[str, Any]) -> None:
        self._rule = rule
        self._condition: dict[str, Any] = rule["condition"]
        self._states: dict[str, _State | None] = {}

    def feed(self, point: Point) -> Alarm | None:
        if point.key not in self._states:
            self._states[point.key] = _State() if fnmatchcase(point.key, self._rule["metric"]) else None
        state = self._states[point.key]
        if state is None:
            return None
        if not self._holds(state, point):
            state.since_step, state.said = None, False
            return None
        if state.since_step is None:
            state.since_step, state.since_time = point.step, point.time
        if state.said or not self._long_enough(state, point):
            return None
        state.said = True
        words = f"{point.key} {self._condition['text']}: {point.value:.6g} at step {point.step}."
        return Alarm(self._rule["name"], words, point.key, self._rule["severity"], tuple(self._rule["choices"]))

    def _holds(self, state: _State, point: Point) -> bool:
        if self._condition["op"] != "no improvement":
            compare = _COMPARE[self._condition["op"]]
            return compare(point.value, self._condition.get("value", 0.0))
        sign = -1.0 if self._condition["goal"] == "max" else 1.0
        if point.value == point.value and (state.best is None or sign * point.value < state.best):
            state.best = sign * point.value
            return False
        return True

    def _long_enough(self, state: _State, point: Point) -> bool:
        steps, seconds = self._condition.get("steps", 0), self._condition.get("seconds", 0.0)
        return bool(point.step - (state.since_step or 0) >= steps and point.time - state.since_time >= seconds)
