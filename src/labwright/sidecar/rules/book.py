"""The rules of one run: built-in rules and the project's own, fed from its files, with their alarms recorded."""

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
from labwright.sidecar.rules.machine import TRACEBACK_HEADER, DiskNearlyFull, GpuIdle, Stall, Traceback
from labwright.sidecar.sources.metric_file import is_of_the_run

_MOST_ALARMS = 20  # of one rule in one run
_TICK_SECONDS = 5.0
_HEADER_BYTES = TRACEBACK_HEADER.encode()
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "is nan": lambda value, _: value != value,
}


@dataclass(slots=True)
class _RuleState:
    since_step: int | None = None  # where the condition became true
    since_time: float = 0.0
    best: float | None = None
    reported: bool = False


class CustomRule:
    """A rule from `[[alerts]]` in labwright.toml, parsed by the server.

    Its metric may hold wildcards. Each metric that matches is judged separately.
    """

    def __init__(self, rule: dict[str, Any]) -> None:
        self._rule = rule
        self._condition: dict[str, Any] = rule["condition"]
        self._states: dict[str, _RuleState | None] = {}

    def feed(self, point: MetricPoint) -> Alarm | None:
        if point.key not in self._states:
            self._states[point.key] = _RuleState() if fnmatchcase(point.key, self._rule["metric"]) else None
        state = self._states[point.key]
        if state is None:
            return None
        if not self._holds(state, point):
            state.since_step, state.reported = None, False
            return None
        if state.since_step is None:
            state.since_step, state.since_time = point.step, point.time
        has_steps = point.step - state.since_step >= self._condition.get("steps", 0)
        has_time = point.time - state.since_time >= self._condition.get("seconds", 0.0)
        if state.reported or not (has_steps and has_time):
            return None
        state.reported = True
        message = f"{point.key} {self._condition['text']}: {point.value:.6g} at step {point.step}."
        return Alarm(self._rule["name"], message, point.key, self._rule["severity"], tuple(self._rule["choices"]))

    def _holds(self, state: _RuleState, point: MetricPoint) -> bool:
        if self._condition["op"] != "no improvement":
            compare = _COMPARE[self._condition["op"]]
            return compare(point.value, self._condition.get("value", 0.0))
        sign = -1.0 if self._condition["goal"] == "max" else 1.0
        if point.value == point.value and (state.best is None or sign * point.value < state.best):
            state.best = sign * point.value
            return False
        return True


class RuleBook:
    """All rules of a run, switched on or off by the project. Repeated alarms are dropped.

    `last_alarms` holds when each rule and key last raised an alarm, so that a new monitor repeats nothing.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        last_alarms: Mapping[tuple[str, str], float],
        record_alarm: Callable[[Alarm], None],
    ) -> None:
        builtin = options.get("builtin", {})
        self._last_alarms = last_alarms
        self._record_alarm = record_alarm
        self._count = Counter(rule for rule, _ in last_alarms)
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
        """Feed one line of output. This is called for every line, so the bytes are searched first."""
        if self._traceback.is_reading or _HEADER_BYTES in text:
            line = OutputLine(text.decode(errors="replace"), time)
            for rule in self._line_rules:
                if alarm := rule.feed(line):
                    self._raise(alarm, time)

    def _raise(self, alarm: Alarm, time: float) -> None:
        if alarm.rule == "traceback" and (alarm.rule, "") in self._last_alarms:
            return  # a line has no time of its own, and only the first traceback is reported
        if time <= self._last_alarms.get((alarm.rule, alarm.key), 0.0) or self._count[alarm.rule] >= _MOST_ALARMS:
            return
        self._count[alarm.rule] += 1
        self._record_alarm(alarm)


class RunRules:
    """Feed the rules of one run from its metric files, its output and its disks, and record their alarms."""

    def __init__(self, paths: RunPaths, spec: dict[str, Any], record: RunJournal, started: float) -> None:
        self._paths = paths
        self._record = record
        self._started = started
        self._workdir = spec["sidecar"]["workdir"]
        options = spec["sidecar"].get("alerts", {})
        watched = [rule["metric"] for rule in options.get("project", ())]
        self._tail = MetricTail(paths.metrics, spec["run"]["attempt"], watched)
        alerts = [event for event in record.events() if event["event"] == "alert"]
        # Only alarms of this attempt: what happened in an earlier one may happen again.
        last_alarms = {(a["rule"], a.get("key", "")): a["time"] for a in alerts if a["time"] >= started}
        self._book = RuleBook(options, last_alarms, self._record_alarm)
        self._tick_at = 0.0

    def see_line(self, line: bytes) -> None:
        self._book.see_line(line, time.time())

    def look(self) -> bool:
        """Feed new points, and a tick if one is due. Return whether there was anything new; there may be more then."""
        before = self._tail.bytes_seen
        for point in self._tail.new_points():
            self._book.see_point(point)
        if time.monotonic() >= self._tick_at:
            self._tick_at = time.monotonic() + _TICK_SECONDS
            now = time.time()
            folders = [folder for folder in (self._paths.dir, self._workdir) if os.path.isdir(folder)]
            self._book.see_tick(Tick(now, now - self._last_sign_of_life(), tuple(map(_disk_of, folders))))
        return self._tail.bytes_seen > before

    def _last_sign_of_life(self) -> float:
        """Return when the run last printed or logged, from file times, so that a new monitor knows it too."""
        files = [f"{self._paths.metrics}/{name}" for name in self._tail.names() if is_of_the_run(name)]
        newest = self._started
        for path in [self._paths.output, *files]:
            with contextlib.suppress(FileNotFoundError):
                newest = max(newest, os.path.getmtime(path))
        return newest

    def _record_alarm(self, alarm: Alarm) -> None:
        self._record.event(
            "alert",
            rule=alarm.rule,
            key=alarm.key,
            message=alarm.message,
            severity=alarm.severity,
            choices=list(alarm.choices),
        )


def _disk_of(folder: str) -> Disk:
    """Return the disk under the folder's real path: the run folder itself is known as a descriptor only."""
    disk = os.statvfs(folder)
    return Disk(os.path.realpath(folder), disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)
