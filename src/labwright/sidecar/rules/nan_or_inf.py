"""A metric that is no number any more."""

from __future__ import annotations

import math

from labwright.sidecar.rules.names import is_gradient_norm, is_loss, is_system
from labwright.sidecar.rules.seen import Alarm, Point

_HEALED_AFTER = 20  # finite points, so that a metric which flickers alarms once
_PATIENCE_OF_NORMS = 5  # loss scaling skips a few steps with an infinite gradient, and that is how it works


class NanOrInf:
    def __init__(self) -> None:
        self._bad: dict[str, int] = {}  # points in a row that are no numbers
        self._calm: dict[str, int] = {}  # finite points since an alarm

    def feed(self, point: Point) -> Alarm | None:
        key = point.key
        if math.isfinite(point.value):
            if self._bad:
                self._recover(key)
            return None
        if is_system(key):
            return None
        self._bad[key] = self._bad.get(key, 0) + 1
        self._calm.pop(key, None)
        if self._bad[key] != (_PATIENCE_OF_NORMS if is_gradient_norm(key) else 1):
            return None
        what = "NaN" if point.value != point.value else "infinite"
        severity = "critical" if is_loss(key) else "warning"
        return Alarm("nan_or_inf", f"{key} is {what} at step {point.step}.", key, severity)

    def _recover(self, key: str) -> None:
        if key in self._bad:
            self._calm[key] = self._calm.get(key, 0) + 1
            if self._calm[key] >= _HEALED_AFTER or (is_gradient_norm(key) and self._bad[key] < _PATIENCE_OF_NORMS):
                del self._bad[key], self._calm[key]
