"""A loss, an error or a gradient norm that runs away, creeps up past where it began, or falls back and stays there.

All are judged against the curve's own history; of fixed numbers there is only a floor for what is small. A spike of
one or two points, a noisy or cyclical curve, networks that play against each other and losses of reinforcement learning
that grow with the rewards are healthy.
"""

from __future__ import annotations

import math

from labwright.sidecar.rules.levels import Levels, median
from labwright.sidecar.rules.names import grows_with_rewards, is_gradient_norm, is_held_out, is_loss, is_of_adversaries
from labwright.sidecar.rules.seen import Alarm, Point

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

    def feed(self, point: Point) -> Alarm | None:
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
        self._levels = Levels()
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
