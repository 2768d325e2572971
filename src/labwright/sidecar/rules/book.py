"""The project's own rules, as `[[alerts]]` in labwright.toml says them; the server has checked and parsed them."""

from __future__ import annotations

import contextlib
import operator
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from labwright.paths import RunPaths
from labwright.sidecar.record import RunJournal
from labwright.sidecar.rules.curves import Divergence, NanOrInf, Plateau
from labwright.sidecar.rules.inputs import (
    Alarm,
    Disk,
    LineRule,
    MetricPoint,
    MetricTail,
    OutputLine,
    PointRule,
    Tick,
    TickRule,
)
from labwright.sidecar.rules.machine import HEADER, DiskNearlyFull, GpuIdle, Stall, Traceback
from labwright.sidecar.sources.metric_file import is_of_the_run

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


class CustomRule:
    """`metric` may hold wildcards; each metric that matches is judged by itself."""

    def __init__(self, rule: dict[str, Any]) -> None:
        self._rule = rule
        self._condition: dict[str, Any] = rule["condition"]
        self._states: dict[str, _State | None] = {}

    def feed(self, point: MetricPoint) -> Alarm | None:
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

    def _holds(self, state: _State, point: MetricPoint) -> bool:
        if self._condition["op"] != "no improvement":
            compare = _COMPARE[self._condition["op"]]
            return compare(point.value, self._condition.get("value", 0.0))
        sign = -1.0 if self._condition["goal"] == "max" else 1.0
        if point.value == point.value and (state.best is None or sign * point.value < state.best):
            state.best = sign * point.value
            return False
        return True

    def _long_enough(self, state: _State, point: MetricPoint) -> bool:
        steps, seconds = self._condition.get("steps", 0), self._condition.get("seconds", 0.0)
        return bool(point.step - (state.since_step or 0) >= steps and point.time - state.since_time >= seconds)


_MOST_ALARMS = 20  # of one rule in one run


class RuleBook:
    """`told` holds when each rule and key last alarmed: a monitor that replaces a dead one repeats nothing."""

    def __init__(self, options: Mapping[str, Any], told: Mapping[tuple[str, str], float], say: Callable[[Alarm], None]):
        builtin = options.get("builtin", {})
        self._told = told
        self._say = say
        self._count = Counter(rule for rule, _ in told)
        self._traceback = Traceback()
        points: dict[str, PointRule] = {
            "nan_or_inf": NanOrInf(),
            "divergence": Divergence(),
            "gpu_idle": GpuIdle(builtin.get("gpu_idle_minutes", 15.0)),
            "plateau": Plateau(),
        }
        ticks: dict[str, TickRule] = {
            "stall": Stall(builtin.get("stall_minutes", 30.0)),
            "disk_nearly_full": DiskNearlyFull(builtin.get("disk_free_gb")),
        }
        self._point_rules = [rule for name, rule in points.items() if builtin.get(name, name != "plateau")]
        self._point_rules += [CustomRule(rule) for rule in options.get("project", ())]
        self._tick_rules = [rule for name, rule in ticks.items() if builtin.get(name, True)]
        self._line_rules: list[LineRule] = [self._traceback] if builtin.get("traceback", True) else []

    def see_point(self, point: MetricPoint) -> None:
        for rule in self._point_rules:
            if alarm := rule.feed(point):
                self._raise(alarm, point.time)

    def see_tick(self, tick: Tick) -> None:
        for rule in self._tick_rules:
            if alarm := rule.feed(tick):
                self._raise(alarm, tick.time)

    def see_line(self, text: bytes, time: float) -> None:
        """Called for every line of the output, so it looks at bytes first."""
        if self._traceback.is_reading or _HEADER_BYTES in text:
            line = OutputLine(text.decode(errors="replace"), time)
            for rule in self._line_rules:
                if alarm := rule.feed(line):
                    self._raise(alarm, time)

    def _raise(self, alarm: Alarm, time: float) -> None:
        if alarm.rule == "traceback" and (alarm.rule, "") in self._told:
            return  # a line has no time of its own; only the first is told anyway
        if time <= self._told.get((alarm.rule, alarm.key), 0.0) or self._count[alarm.rule] >= _MOST_ALARMS:
            return
        self._count[alarm.rule] += 1
        self._say(alarm)


_HEADER_BYTES = HEADER.encode()


_TICK_SECONDS = 5.0


class RunRules:
    def __init__(self, paths: RunPaths, spec: dict[str, Any], record: RunJournal, started: float) -> None:
        self._paths = paths
        self._record = record
        self._started = started
        self._workdir = spec["sidecar"]["workdir"]
        options = spec["sidecar"].get("alerts", {})
        watched = [rule["metric"] for rule in options.get("project", ())]
        self._tail = MetricTail(paths.metrics, spec["run"]["attempt"], watched)
        self._book = RuleBook(options, self._told(), self._say)
        self._tick_at = 0.0

    def _told(self) -> dict[tuple[str, str], float]:
        """Since the attempt began; what an earlier one was told of may happen again."""
        alerts = [event for event in self._record.events() if event["event"] == "alert"]
        return {(a["rule"], a.get("key", "")): a["time"] for a in alerts if a["time"] >= self._started}

    def see_line(self, line: bytes) -> None:
        self._book.see_line(line, time.time())

    def look(self) -> bool:
        """Answers whether there was anything new: then there may be more."""
        before = self._tail.bytes_seen
        for point in self._tail.new_points():
            self._book.see_point(point)
        if time.monotonic() >= self._tick_at:
            self._tick_at = time.monotonic() + _TICK_SECONDS
            self._book.see_tick(self._tick())
        return self._tail.bytes_seen > before

    def _tick(self) -> Tick:
        now = time.time()
        folders = [folder for folder in (self._paths.dir, self._workdir) if os.path.isdir(folder)]
        return Tick(now, now - self._last_sign_of_life(), tuple(map(_disk_of, folders)))

    def _last_sign_of_life(self) -> float:
        """From the files' own times, so that it survives this process."""
        files = [f"{self._paths.metrics}/{name}" for name in self._tail.names() if is_of_the_run(name)]
        newest = self._started
        for path in [self._paths.output, *files]:
            with contextlib.suppress(FileNotFoundError):
                newest = max(newest, os.path.getmtime(path))
        return newest

    def _say(self, alarm: Alarm) -> None:
        self._record.event(
            "alert",
            rule=alarm.rule,
            key=alarm.key,
            message=alarm.message,
            severity=alarm.severity,
            choices=list(alarm.choices),
        )


def _disk_of(folder: str) -> Disk:
    """By the folder's real name: the run's own is held open, and known here as a number."""
    disk = os.statvfs(folder)
    return Disk(os.path.realpath(folder), disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)
