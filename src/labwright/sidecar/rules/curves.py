"""A curve in at most 400 levels, each the median of some points: the whole history, robust and small."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from labwright.sidecar.rules.inputs import Alarm, MetricPoint
from labwright.sidecar.rules.names import (
    grows_with_rewards,
    is_better_higher,
    is_gradient_norm,
    is_held_out,
    is_loss,
    is_of_adversaries,
    is_system,
)

_MOST_LEVELS = 400
_POINTS = 5
_RECENT = 9
_FIRST = 3


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class CurveLevels:
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
        if len(self.all) == _MOST_LEVELS:
            self.all = [(a + b) / 2 for a, b in zip(self.all[::2], self.all[1::2], strict=True)]
            self._size *= 2
        return True


_WARM_UP = 8  # levels before anything is judged
_MOST_CURVES = 2000
_HEALED_AFTER = 20  # points back below the limit
_YOUNG_POINTS = 3
_LOST_FACTOR = 6.0  # times the best
_SMALLEST_SCALE = 0.1  # a term that leaves zero for a hundredth is small, not sick
_REWARD_SCALE = 1.0  # of what leaves zero when the first reward is found


class Divergence:
    def __init__(self) -> None:
        self._curves: dict[str, _Curve | None] = {}

    def feed(self, point: MetricPoint) -> Alarm | None:
        curve = self._curve(point.key)
        if curve is None or not math.isfinite(point.value):
            return None
        words = curve.add(point.value)
        if not words:
            return None
        return Alarm("divergence", f"{point.key} {words} at step {point.step}.", point.key, "critical")

    def _curve(self, key: str) -> _Curve | None:
        if key not in self._curves and len(self._curves) < _MOST_CURVES:
            self._curves[key] = _Curve(key) if is_loss(key) or is_gradient_norm(key) else None
        return self._curves.get(key)


class _Curve:
    def __init__(self, key: str) -> None:
        norm, rewards = is_gradient_norm(key), grows_with_rewards(key)
        game = rewards or is_of_adversaries(key)
        self._factor = 9.0 if norm else 4.0 if game else 2.0
        # times its first level, however slowly it got there
        self._creep = 30.0 if norm else 300.0 if rewards else 40.0 if game else 8.0
        self._smallest_scale = _REWARD_SCALE if rewards else _SMALLEST_SCALE
        self._above_start = 2.0 if is_held_out(key) else 1.25  # after all progress is lost; overfitting may do that
        self._falls_back = not norm and not game
        self._levels = CurveLevels()
        self._limit = math.inf
        self._alarmed_above: float | None = None
        self._calm = 0

    def add(self, value: float) -> str:
        """What is wrong, in words, or nothing."""
        if value == 0.0 and not self._levels.first:
            return ""  # a term that is switched on later, or a number that nobody has yet
        new_level = self._levels.add(value)
        if self._alarmed_above is not None:
            self._recover(value)
            return ""
        if self._is_young:
            return self._exploded_at_once()
        return self._ran_away(new_level) or (self._crept() or self._fell_back() if new_level else "")

    @property
    def _is_young(self) -> bool:
        return len(self._levels.all) < _WARM_UP

    def _exploded_at_once(self) -> str:
        """Too few points for a history: only against the very first."""
        first = self._levels.first
        now, limit = self._levels.now(_YOUNG_POINTS), self._creep * self._scale(max(first))
        if self._levels.count < len(first) + _YOUNG_POINTS or now <= limit:
            return ""
        self._alarmed_above = limit
        return f"runs away: {now:.4g}, where it began at {first[0]:.4g}"

    def _ran_away(self, new_level: bool) -> str:
        if new_level or self._limit == math.inf:
            self._limit = self._run_away_limit()
        now = self._levels.now()
        if now <= self._limit:
            return ""
        self._alarmed_above = self._limit
        return f"runs away: {now:.4g}, far above all before (up to {max(self._old()):.4g})"

    def _crept(self) -> str:
        """A rise so slow that each part of it looks like the one before: measured against its beginning and best."""
        levels, start = self._levels.all, self._levels.start
        newest = levels[-max(6, len(levels) // 10) :]
        now, best = min(median(newest), self._levels.now()), sorted(levels)[len(levels) // 10]
        limit = self._creep * self._scale(start)
        if self._falls_back and start > _SMALLEST_SCALE and 0 < best < start / 2:
            limit = min(limit, max(self._above_start * start, _LOST_FACTOR * best, self._crest()))
        if now <= limit:
            return ""
        self._alarmed_above = limit
        return f"has crept up to {now:.4g}, where it began at {start:.4g} and had reached {best:.4g}"

    def _crest(self) -> float:
        """The height from which it has come back after it was low: one of a wave that goes on."""
        levels = self._levels.all
        low = [place for place, level in enumerate(levels) if level < self._levels.start / 2]
        return 1.1 * max(levels[low[0] : low[-1] + 1])  # noise makes no two crests the same

    def _fell_back(self) -> str:
        base = self._fallen_from() if self._falls_back else None
        if base is None:
            return ""
        now = self._levels.now()
        self._alarmed_above = (base + now) / 2
        return f"fell back to {now:.4g} from {base:.4g} and stays there"

    def _recover(self, value: float) -> None:
        self._calm = self._calm + 1 if value < (self._alarmed_above or 0.0) else 0
        if self._calm >= _HEALED_AFTER:
            self._alarmed_above, self._calm = None, 0
            self._limit = self._run_away_limit()

    def _old(self) -> list[float]:
        """The history without its end, so that a slow explosion is not measured against itself."""
        levels = self._levels.all
        return levels[: -max(4, len(levels) // 10)]

    def _run_away_limit(self) -> float:
        old = self._old()
        top = max(old)
        return top + self._factor * self._scale(max(top - min(old), abs(top)))

    def _fallen_from(self) -> float | None:
        """The level from which half of all progress was lost, and not regained since.

        At once; or in a climb of some levels after a longer calm, which sets it apart from a wave.
        """
        levels = self._levels.all
        part = max(6, len(levels) // 8)
        if len(levels) < 2 * part + 3:
            return None
        climb = part // 3
        calms = levels[-2 * part : -part], levels[-4 * part - climb : -part - climb]
        return next((median(calm) for calm in calms if self._fell(calm, levels[-part:])), None)

    def _fell(self, before: list[float], after: list[float]) -> bool:
        start, base, half = self._levels.start, median(before), len(after) // 2
        progress = start - base
        return (
            progress > abs(start) / 3
            and max(before) < base + 0.2 * progress  # calm until then: no cycle, no swing
            and min(after) > base + 0.5 * progress
            and median(after[half:]) > median(after[:half]) - 0.05 * progress  # and not on its way down again
        )

    def _scale(self, value: float) -> float:
        return max(abs(value), self._smallest_scale)


_PLATEAU_LEVELS = 60  # 300 points at least
_GAIN = 0.01


class Plateau:
    def __init__(self) -> None:
        self._curves: dict[str, CurveLevels | None] = {}

    def feed(self, point: MetricPoint) -> Alarm | None:
        key = point.key
        sign = -1.0 if is_better_higher(key) else 1.0
        if key not in self._curves:
            self._curves[key] = CurveLevels() if sign < 0 or is_loss(key) else None
        levels = self._curves[key]
        if levels is None or not math.isfinite(point.value) or not levels.add(sign * point.value):
            return None
        half = len(levels.all) // 2
        if len(levels.all) < _PLATEAU_LEVELS:
            return None
        best, newest = min(levels.all[:half]), min(levels.all[half:])
        if newest < best - _GAIN * abs(best):
            return None
        self._curves[key] = None  # said once
        return Alarm("plateau", f"{key} has not improved since {sign * best:.4g}, for half of the run.", key, "info")


_FINITE_AGAIN = 20  # finite points, so that a metric which flickers alarms once
_PATIENCE_OF_NORMS = 5  # loss scaling skips a few steps with an infinite gradient, and that is how it works


class NanOrInf:
    def __init__(self) -> None:
        self._bad: dict[str, int] = {}  # points in a row that are no numbers
        self._calm: dict[str, int] = {}  # finite points since an alarm

    def feed(self, point: MetricPoint) -> Alarm | None:
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
            if self._calm[key] >= _FINITE_AGAIN or (is_gradient_norm(key) and self._bad[key] < _PATIENCE_OF_NORMS):
                del self._bad[key], self._calm[key]
