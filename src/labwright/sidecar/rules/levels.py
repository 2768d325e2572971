"""A curve in at most 400 levels, each the median of some points: the whole history, robust and small."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

_MOST = 400
_POINTS = 5


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Levels:
    def __init__(self) -> None:
        self.all: list[float] = []
        self.start = 0.0  # the highest of the first three
        self._block: list[float] = []
        self._size = _POINTS  # points a level; doubles when there are too many levels
        self._last: deque[float] = deque(maxlen=_POINTS)

    @property
    def now(self) -> float:
        """The lowest of the last five points: outliers upwards do not move it, unless they stay."""
        return min(self._last)

    def add(self, value: float) -> bool:
        """Answers whether a level was completed."""
        self._last.append(value)
        self._block.append(value)
        if len(self._block) < self._size:
            return False
        self.all.append(median(self._block))
        self._block = []
        if len(self.all) == 3:
            self.start = max(self.all)
        if len(self.all) == _MOST:
            self.all = [(a + b) / 2 for a, b in zip(self.all[::2], self.all[1::2], strict=True)]
            self._size *= 2
        return True
