"""A metric that no longer improves. Off unless asked for: most runs end on a plateau."""

from __future__ import annotations

import math

from labwright.sidecar.rules.levels import Levels
from labwright.sidecar.rules.names import is_better_higher, is_loss
from labwright.sidecar.rules.seen import Alarm, Point

_LEVELS = 60  # 300 points at least
_GAIN = 0.01


class Plateau:
    def __init__(self) -> None:
        self._curves: dict[str, Levels | None] = {}

    def feed(self, point: Point) -> Alarm | None:
        key = point.key
        sign = -1.0 if is_better_higher(key) else 1.0
        if key not in self._curves:
            self._curves[key] = Levels() if sign < 0 or is_loss(key) else None
        levels = self._curves[key]
        if levels is None or not math.isfinite(point.value) or not levels.add(sign * point.value):
            return None
        half = len(levels.all) // 2
        if len(levels.all) < _LEVELS:
            return None
        best, newest = min(levels.all[:half]), min(levels.all[half:])
        if newest < best - _GAIN * abs(best):
            return None
        self._curves[key] = None  # said once
        return Alarm("plateau", f"{key} has not improved since {sign * best:.4g}, for half of the run.", key, "info")
