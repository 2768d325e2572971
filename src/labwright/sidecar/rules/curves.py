"""Rules about the curve of one metric: divergence, plateau, and values that are not finite.

Only the name of a metric says what it is and whether it should fall. Nobody declares it.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache

from labwright.sidecar.rules.inputs import Alarm, MetricPoint

_MOST_LEVELS = 400
_POINTS = 5
_RECENT = 9
_FIRST = 3
_WARM_UP = 8  # levels before anything is judged
_MOST_CURVES = 2000
_HEALED_AFTER = 20  # points below the limit
_YOUNG_POINTS = 3
_LOST_FACTOR = 6.0  # times the best
_SMALLEST_SCALE = 0.1  # a term that rises from zero to a hundredth is small, not divergent
_REWARD_SCALE = 1.0  # for terms that leave zero with the first reward
_PLATEAU_LEVELS = 60  # 300 points at least
_GAIN = 0.01
_FINITE_AGAIN = 20  # finite points, so that a metric that alternates raises one alarm
_PATIENCE_OF_NORMS = 5  # loss scaling skips a few steps with an infinite gradient by design
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_LOSSES = frozenset(
    {"nll", "perplexity", "ppl", "error", "err", "mse", "rmse", "mae", "bpb", "bpc", "wer", "cer", "cost", "objective"}
)
_RISE_IN_HEALTH = frozenset(
    {
        *("kl", "kld", "entropy", "penalty", "regularization", "regularisation", "regularizer", "regulariser"),
        # These rise as a code book comes into use, or with a weight that is ramped up.
        *("commit", "commitment", "consistency"),
    }
)
_FACTORS = frozenset({"scale", "weight", "coef", "count"})  # parts of a loss, not a loss: `loss_scale`, `loss/weight`
_HELD_OUT = frozenset({"val", "valid", "validation", "eval", "test", "dev"})
_GOOD = frozenset({"acc", "accuracy", "auc", "auroc", "f1", "reward", "return", "score", "bleu", "rouge", "map", "iou"})
_ADVERSARIAL = frozenset({"g", "d", "gen", "disc", "adv", "gan", "critic", "generator", "discriminator", "adversarial"})
_REINFORCED = frozenset({"actor", "critic", "policy", "vf", "qf", "td"})
_VALUE_LOSS = re.compile(r"value_?loss", re.IGNORECASE)  # not `loss_value`, which may be any loss


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class CurveLevels:
    """A curve as at most 400 levels, each the median of some points: the whole history, robust and small."""

    def __init__(self) -> None:
        self.all: list[float] = []
        self.start = 0.0  # the highest of the first three levels
        self.first: list[float] = []  # the first three points
        self._block: list[float] = []
        self._size = _POINTS  # points per level; doubles when there are too many levels
        self._last: deque[float] = deque(maxlen=_RECENT)

    @property
    def count(self) -> int:
        """Points so far, but no more than nine."""
        return len(self._last)

    def now(self, points: int = _POINTS) -> float:
        """Return the current level: the lowest of the last points, or what two thirds of the last nine exceed.

        Short spikes do not change it.
        """
        last = list(self._last)
        lowest = min(last[-points:])
        return max(lowest, sorted(last)[_RECENT // 3]) if len(last) == _RECENT else lowest

    def add(self, value: float) -> bool:
        """Add a point. Return whether it completed a level."""
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


class Divergence:
    """A loss, an error or a gradient norm that explodes, rises slowly above its start, or falls back and stays there.

    Each curve is compared with its own history. Healthy are: a spike of one or two points, a noisy or cyclical curve,
    networks that compete with each other, and losses of reinforcement learning that grow with the rewards.
    """

    def __init__(self) -> None:
        self._curves: dict[str, _Curve | None] = {}

    def feed(self, point: MetricPoint) -> Alarm | None:
        key = point.key
        if key not in self._curves and len(self._curves) < _MOST_CURVES:
            self._curves[key] = _Curve(key) if is_loss(key) or is_gradient_norm(key) else None
        curve = self._curves.get(key)
        if curve is None or not math.isfinite(point.value):
            return None
        fault = curve.add(point.value)
        if not fault:
            return None
        return Alarm("divergence", f"{point.key} {fault} at step {point.step}.", point.key, "critical")


class _Curve:
    def __init__(self, key: str) -> None:
        norm, rewards = is_gradient_norm(key), grows_with_rewards(key)
        game = rewards or is_adversarial(key)
        self._factor = 9.0 if norm else 4.0 if game else 2.0
        # factor above its first level, however slowly it got there
        self._creep = 30.0 if norm else 300.0 if rewards else 40.0 if game else 8.0
        self._smallest_scale = _REWARD_SCALE if rewards else _SMALLEST_SCALE
        self._above_start = 2.0 if is_held_out(key) else 1.25  # overfitting may lose all progress on held-out data
        self._falls_back = not norm and not game
        self._levels = CurveLevels()
        self._limit = math.inf
        self._alarmed_above: float | None = None
        self._calm = 0

    def add(self, value: float) -> str:
        """Add a point. Return what is wrong, or an empty text."""
        if value == 0.0 and not self._levels.first:
            return ""  # a term that is switched on later, or a placeholder
        new_level = self._levels.add(value)
        if self._alarmed_above is not None:
            self._recover(value)
            return ""
        if len(self._levels.all) < _WARM_UP:
            return self._exploded_at_once()
        return self._exploded(new_level) or (self._rose_slowly() or self._fell_back() if new_level else "")

    def _exploded_at_once(self) -> str:
        """With too few points for a history, compare only with the first ones."""
        first = self._levels.first
        now, limit = self._levels.now(_YOUNG_POINTS), self._creep * self._scale(max(first))
        if self._levels.count < len(first) + _YOUNG_POINTS or now <= limit:
            return ""
        self._alarmed_above = limit
        return f"explodes: {now:.4g}, and it started at {first[0]:.4g}"

    def _exploded(self, new_level: bool) -> str:
        if new_level or self._limit == math.inf:
            self._limit = self._explosion_limit()
        now = self._levels.now()
        if now <= self._limit:
            return ""
        self._alarmed_above = self._limit
        return f"explodes: {now:.4g}, and it never exceeded {max(self._old()):.4g} before"

    def _rose_slowly(self) -> str:
        """Compare with the start and the best level: in a slow rise each part looks like the one before."""
        levels, start = self._levels.all, self._levels.start
        newest = levels[-max(6, len(levels) // 10) :]
        now, best = min(median(newest), self._levels.now()), sorted(levels)[len(levels) // 10]
        limit = self._creep * self._scale(start)
        if self._falls_back and start > _SMALLEST_SCALE and 0 < best < start / 2:
            limit = min(limit, max(self._above_start * start, _LOST_FACTOR * best, self._crest()))
        if now <= limit:
            return ""
        self._alarmed_above = limit
        return f"has slowly risen to {now:.4g}; it started at {start:.4g} and had reached {best:.4g}"

    def _crest(self) -> float:
        """Return the height from which a wave has already come back once."""
        levels = self._levels.all
        low = [index for index, level in enumerate(levels) if level < self._levels.start / 2]
        return 1.1 * max(levels[low[0] : low[-1] + 1])  # noise: crests differ a little

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
            self._limit = self._explosion_limit()

    def _old(self) -> list[float]:
        """Return the history without its end, so that a slow explosion is not compared with itself."""
        levels = self._levels.all
        return levels[: -max(4, len(levels) // 10)]

    def _explosion_limit(self) -> float:
        old = self._old()
        top = max(old)
        return top + self._factor * self._scale(max(top - min(old), abs(top)))

    def _fallen_from(self) -> float | None:
        """Return the level from which half of all progress was lost and not regained, or None.

        It is lost at once, or in a climb of some levels after a longer calm phase. A wave has no such phase.
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
            and max(before) < base + 0.2 * progress  # calm until then: not a cycle
            and min(after) > base + 0.5 * progress
            and median(after[half:]) > median(after[:half]) - 0.05 * progress  # not falling again
        )

    def _scale(self, value: float) -> float:
        return max(abs(value), self._smallest_scale)


class Plateau:
    """A metric that no longer improves. This rule is off by default: most runs end on a plateau."""

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
        self._curves[key] = None  # reported once
        return Alarm("plateau", f"{key} has not improved since {sign * best:.4g}, for half of the run.", key, "info")


class NanOrInf:
    """A metric that is NaN or infinite."""

    def __init__(self) -> None:
        self._bad: dict[str, int] = {}  # points in a row that are not finite
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


@lru_cache(4096)
def words_in(key: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(key))


def is_loss(key: str) -> bool:
    """Return whether the metric should fall."""
    if words_in(key) & _RISE_IN_HEALTH or words_in(key.rsplit("/", 1)[-1]) <= _FACTORS:
        return False
    parts = [words_in(part) for part in key.split("/")]
    return any(word in _LOSSES or word.endswith("loss") for words in parts if not words & _FACTORS for word in words)


def is_held_out(key: str) -> bool:
    """Return whether it is measured on data outside training. Such a metric rises when the model overfits."""
    return bool(words_in(key) & _HELD_OUT)


def is_gradient_norm(key: str) -> bool:
    words = words_in(key)
    return "gradnorm" in words or ("norm" in words and bool(words & {"grad", "gradient", "grads", "gradients"}))


def is_adversarial(key: str) -> bool:
    """Return whether two networks compete, where a rise alone is healthy."""
    return bool(words_in(key) & _ADVERSARIAL)


def grows_with_rewards(key: str) -> bool:
    """Return whether it is an error in predicting rewards. It starts near zero and grows with their square."""
    return bool(words_in(key) & _REINFORCED) or _VALUE_LOSS.search(key) is not None


def is_better_higher(key: str) -> bool:
    return bool(words_in(key) & _GOOD)


def is_system(key: str) -> bool:
    return key.startswith("system/")
