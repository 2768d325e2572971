"""The rules of one run, switched as the project says; storms are kept from the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from labwright.sidecar.rules.disk_nearly_full import DiskNearlyFull
from labwright.sidecar.rules.divergence import Divergence
from labwright.sidecar.rules.gpu_idle import GpuIdle
from labwright.sidecar.rules.nan_or_inf import NanOrInf
from labwright.sidecar.rules.plateau import Plateau
from labwright.sidecar.rules.project import ProjectRule
from labwright.sidecar.rules.seen import Alarm, Line, LineRule, Point, PointRule, Tick, TickRule
from labwright.sidecar.rules.stall import Stall
from labwright.sidecar.rules.traceback import HEADER, Traceback

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
        self._point_rules += [ProjectRule(rule) for rule in options.get("project", ())]
        self._tick_rules = [rule for name, rule in ticks.items() if builtin.get(name, True)]
        self._line_rules: list[LineRule] = [self._traceback] if builtin.get("traceback", True) else []

    def see_point(self, point: Point) -> None:
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
            line = Line(text.decode(errors="replace"), time)
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
