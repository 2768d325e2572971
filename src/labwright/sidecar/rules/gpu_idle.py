"""A leased card that does nothing while the run holds it."""

from __future__ import annotations

import re

from labwright.sidecar.rules.seen import Alarm, Point

_KEY = re.compile(r"system/gpu(\d+)/utilization$")
_IDLE_PERCENT = 3.0


class GpuIdle:
    def __init__(self, minutes: float) -> None:
        self._seconds = minutes * 60
        self._idle_since: dict[str, float] = {}
        self._said: set[str] = set()

    def feed(self, point: Point) -> Alarm | None:
        match = _KEY.match(point.key)
        if match is None:
            return None
        if point.value > _IDLE_PERCENT:
            self._idle_since.pop(point.key, None)
            self._said.discard(point.key)
            return None
        since = self._idle_since.setdefault(point.key, point.time)
        if point.key in self._said or point.time - since < self._seconds:
            return None
        self._said.add(point.key)
        return Alarm("gpu_idle", f"GPU {match[1]} has been idle for {self._seconds / 60:g} minutes.", point.key)
