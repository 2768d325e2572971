"""Seeds, budgets and lengths: `3 seeds`, `at most 20 runs`, `within 2 hours`, `2 at a time`."""

from __future__ import annotations

from labwright.planning.goals.facts import Budget
from labwright.planning.goals.values import values_after
from labwright.planning.goals.words import Words
from labwright.planning.scan import Flag

_RUNS = {"runs", "run", "trials", "trial", "experiments", "configurations", "configs", "jobs", "models"}
_REPEATS = {"seeds", "seed", "repeats", "repetitions", "replicates", "times"}
SECONDS = {
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400,
}  # fmt: skip
_AT_MOST = {
    "most", "max", "maximum", "than", "to", "within", "budget", "limit", "under", "exceed", "in", "of", "only", "is",
    "about", "total", "below", "less", "up", "using",
}  # fmt: skip
COUNTED = frozenset({*_RUNS, *_REPEATS, "epochs", "epoch", "steps", "gpu", "gpus", "gpu-hours", "at a time"})
_SEED = Flag(name="seed", option="--seed", type="int")
_MOST_SEEDS = 100


def read_seeds(words: Words) -> list[int]:
    return _listed_seeds(words) or _counted_seeds(words)


def _listed_seeds(words: Words) -> list[int]:
    """`seeds 1, 2, 3`, `seed 42`, `seeds 0 to 4`; `seeds: 3` counts them, as it does in a sweep file."""
    for index, token in enumerate(words.tokens):
        if token.text not in ("seeds", "seed", "--seed") or not words.is_free(index):
            continue
        found = values_after(words, index + 1, words.clause_end(index), _SEED)
        if found and all(isinstance(value, int) and value >= 0 for value in found.values):
            words.take(index, found.end)
            if token.text == "seeds" and len(found.values) == 1 and 0 < found.values[0] <= _MOST_SEEDS:
                return list(range(found.values[0]))
            return [int(value) for value in found.values][:_MOST_SEEDS]
    return []


def _counted_seeds(words: Words) -> list[int]:
    """`3 seeds`, `over five random seeds`, `repeat each 3 times`."""
    for index, token in enumerate(words.tokens):
        number = words.number(index)
        if not isinstance(number, int) or not 0 < number <= _MOST_SEEDS or not words.is_free(index):
            continue
        noun = index + 1
        while words.at(noun) in ("random", "different", "independent", "fixed"):
            noun += 1
        repeated = words.at(noun) != "times" or any(
            words.at(place).startswith(("repeat", "run")) for place in range(max(0, index - 5), index)
        )
        if words.at(noun) in _REPEATS and repeated and token.number is not None:
            words.take(index, noun + 1)
            return list(range(number))
    return []


def read_budget(words: Words) -> Budget:
    return Budget(
        runs=_counted(words, _RUNS),
        seconds=_duration(words),
        parallel=_parallel(words),
        gpus=_counted(words, {"gpu", "gpus"}),
    )


def _counted(words: Words, nouns: set[str]) -> int | None:
    for index in range(len(words.tokens)):
        number = words.number(index)
        if isinstance(number, int) and number > 0 and words.at(index + 1) in nouns and words.is_free(index):
            words.take(_back(words, index), index + 2)
            return number
        if (
            words.at(index) in nouns
            and words.at(index + 1) in (":", "=", "<", "<=")
            and isinstance(words.number(index + 2), int)
        ):
            words.take(index, index + 3)
            return int(words.number(index + 2) or 0)
    return None


def _back(words: Words, index: int) -> int:
    """Where `at most`, `no more than`, `within` in front of a number begins."""
    while index > 0 and words.at(index - 1) in _AT_MOST | {"at", "no", "more", "not", "a", "the", "on"}:
        index -= 1
    return index


def _duration(words: Words) -> float | None:
    for index in range(len(words.tokens)):
        number, unit = words.number(index), words.at(index + 1)
        if number is None or number <= 0 or unit not in SECONDS or not words.is_free(index):
            continue
        begin, total = _back(words, index), number * SECONDS[unit]
        end = index + 2
        more = words.number(end + (words.at(end) == "and"))
        if more and words.at(end + (words.at(end) == "and") + 1) in SECONDS:  # 1 hour and 30 minutes
            end += words.at(end) == "and"
            total += more * SECONDS[words.at(end + 1)]
            end += 2
        words.take(begin, end)
        return float(total)
    return None


def _parallel(words: Words) -> int | None:
    for index in range(len(words.tokens)):
        number = words.number(index)
        if isinstance(number, int) and number > 0:
            if words.matches(index + 1, ("at", "a", "time")):
                words.take(index, index + 4)
                return number
            if words.matches(index + 1, ("in", "parallel")):
                words.take(index, index + 3)
                return number
    return None
