"""Seeds and budgets: `3 seeds`, `seeds 0 to 4`, `at most 20 runs`, `within 2 hours`, `2 at a time`, `4 gpus`."""

from __future__ import annotations

from dataclasses import dataclass

from labwright.planning.goals.facts import Budget
from labwright.planning.goals.tokens import Tokens
from labwright.planning.goals.values import MOST_VALUES, Division, values_after
from labwright.planning.scan import Flag

_RUNS = frozenset({"runs", "run", "trials", "trial", "experiments", "configurations", "configs", "jobs"})
_REPEATS = frozenset({"seeds", "seed", "repeats", "repetitions", "replicates", "times"})
SECONDS = {
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400,
}  # fmt: skip
COUNTED = frozenset({*_RUNS, *_REPEATS, "models", "epochs", "epoch", "steps", "gpu", "gpus", "gpu-hours", "at a time"})
_LIMITS = frozenset({"most", "max", "maximum", "than", "to", "within", "budget", "limit", "under", "in", "below"})
_BEFORE_LIMITS = _LIMITS | {"at", "no", "more", "not", "less", "up", "a", "the", "of", "about", "only", ":"}
_LIMITS_BEHIND = frozenset({"max", "maximum", "budget", "tops"})
_SEED = Flag(name="seed", option="--seed", type="int")


@dataclass(frozen=True, slots=True)
class Seeds:
    values: tuple[int, ...] = ()
    too_many: int = 0  # the requested number, if it is more than a plan may have


def read_seeds(tokens: Tokens) -> Seeds:
    """Return the seeds that the goal names first: newer text comes first."""
    every = [_listed_seeds(tokens, index) or _counted_seeds(tokens, index) for index in range(len(tokens))]
    return next((seeds for seeds in every if seeds), Seeds())


def _listed_seeds(tokens: Tokens, index: int) -> Seeds | None:
    """Read `seeds 1, 2, 3`, `seed 42` or `seeds 0 to 4`; `seeds: 3` is a number of seeds, as in a sweep file."""
    if tokens.at(index) not in ("seeds", "seed", "--seed") or not tokens.is_free(index):
        return None
    found = values_after(tokens, index + 1, tokens.clause_end(index), _SEED, Division(step=1))
    if found is None or not all(isinstance(value, int) and value >= 0 for value in found.values):
        return None
    tokens.take(index, found.end)
    if found.too_many:
        return Seeds(too_many=found.too_many)
    if tokens.at(index) == "seeds" and len(found.values) == 1 and found.values[0] > 0:
        return _first_seeds(found.values[0])
    return Seeds(found.values)


def _counted_seeds(tokens: Tokens, index: int) -> Seeds | None:
    """Read `3 seeds`, `five random seeds`, `repeat 3 times` or `10 times with different seeds`."""
    number = tokens.number(index)
    if not isinstance(number, int) or number <= 0 or not tokens.is_free(index):
        return None
    noun = index + 1 + (tokens.at(index + 1) in ("random", "different", "independent"))
    repeats = any(tokens.at(place).startswith(("repeat", "run")) for place in range(max(0, index - 5), index))
    if tokens.at(noun) not in _REPEATS or (tokens.at(noun) == "times" and not repeats):
        return None
    tokens.take(index, noun)
    listed = _listed_seeds(tokens, noun)  # 3 seeds: 7, 8, 9
    end = noun + 1
    behind = [tokens.at(place) for place in range(end, end + 3)]
    if behind[0] in ("with", "over") and behind[1] in ("random", "different") and behind[2] == "seeds":
        end += 3
    tokens.take(noun, end)
    return listed or _first_seeds(number)


def _first_seeds(count: int) -> Seeds:
    return Seeds(too_many=count) if count > MOST_VALUES else Seeds(tuple(range(count)))


def read_budget(tokens: Tokens) -> Budget:
    runs = seconds = parallel = gpus = None
    for index in range(len(tokens)):
        number = tokens.number(index)
        if number is None or number <= 0 or not tokens.is_free(index):
            continue
        following = [tokens.at(index + offset) for offset in (1, 2, 3)]
        if isinstance(number, int) and (following == ["at", "a", "time"] or following[:2] == ["in", "parallel"]):
            tokens.take(index, index + (4 if following[0] == "at" else 3))
            parallel = parallel or number
        elif isinstance(number, int) and following[0] in ("gpu", "gpus") and following[1] not in SECONDS:
            tokens.take(index, index + 2)
            gpus = gpus or number
        elif isinstance(number, int) and following[0] in _RUNS and _is_limit(tokens, index, index + 2):
            runs = runs or number
        elif following[0] in SECONDS:
            total, end = number * SECONDS[following[0]], index + 2
            more = tokens.number(end)
            if more and tokens.at(end + 1) in SECONDS:  # 1h 30min
                total, end = total + more * SECONDS[tokens.at(end + 1)], end + 2
            if _is_limit(tokens, index, end):
                seconds = seconds or float(total)
    return Budget(runs=runs, seconds=seconds, parallel=parallel, gpus=gpus)


def _is_limit(tokens: Tokens, start: int, end: int) -> bool:
    """Return whether `at most`, `within` or the like is in front of it, or `max` or `budget` behind; take it all."""
    first = start
    while tokens.at(first - 1) in _BEFORE_LIMITS and tokens.is_free(first - 1):
        first -= 1
    behind = tokens.at(end) in _LIMITS_BEHIND
    if not behind and not any(tokens.at(place) in _LIMITS for place in range(first, start)):
        return False
    tokens.take(first, end + behind)
    return True
