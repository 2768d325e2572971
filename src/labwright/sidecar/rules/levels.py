"""A curve in at most 400 levels, each the median of some points: the whole history, robust and small."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

_MOST = 400
_POINTS = 5
_RECENT = 9
_FIRST = 3


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Levels:
    def __init__(self) -> None:
        self.all: list[float] = []
        self.start = 0.0  # the highest of the first three
        self.first: list[float] = []  # the first three points
        self._block: list[float] = []
        self._size = _POINTS  # points a level; doubles when there are too many levels
        self._last: deque[float] = deque(maxlen=_RECENT)

    @property
    def count(self) -> int:
        """Points so far, as far as it matters to whoever asks: no more than nine."""
        return len(self._last)

    def now(self, points: int = _POINTS) -> float:
        """The lowest of the last points, or what two of three of the last nine exceed: outliers upwards do not move it,
        unless they stay."""
        last = list(self._last)
        lowest = min(last[-points:])
        return max(lowest, sorted(last)[_RECENT // 3]) if len(last) == _RECENT else lowest

    def add(self, value: float) -> bool:
        """Answers whether a level was completed."""
        self._last.append(value)
        if len(self.first) < _FIRST:
            self.first.append(value)
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
