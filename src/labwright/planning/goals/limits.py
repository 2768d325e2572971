"""Seeds, budgets and lengths: `3 seeds`, `at most 20 runs`, `within 2 hours`, `2 at a time`."""

from __future__ import annotations

from dataclasses import dataclass

from labwright.planning.goals.facts import Budget
from labwright.planning.goals.spacing import MOST_VALUES, Wish
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
_AT_MOST_BEHIND = {"max", "maximum", "tops"}  # 16 runs max
_SEED = Flag(name="seed", option="--seed", type="int")


@dataclass(frozen=True, slots=True)
class Seeds:
    values: tuple[int, ...] = ()
    too_many: int = 0  # so many are asked for; then none are given


def read_seeds(words: Words) -> Seeds:
    """The first that are named: what was said last stands first."""
    for index in range(len(words.tokens)):
        found = _listed_seeds(words, index) or _counted_seeds(words, index)
        if found:
            return found
    return Seeds()


def _listed_seeds(words: Words, index: int) -> Seeds | None:
    """`seeds 1, 2, 3`, `seed 42`, `seeds 0 to 4`; `seeds: 3` counts them, as it does in a sweep file."""
    if words.at(index) not in ("seeds", "seed", "--seed") or not words.is_free(index):
        return None
    found = values_after(words, index + 1, words.clause_end(index), _SEED, Wish(step=1))
    if found is None or not all(isinstance(value, int) and value >= 0 for value in found.values):
        return None
    words.take(index, found.end)
    if found.too_many:
        return Seeds(too_many=found.too_many)
    if words.at(index) == "seeds" and len(found.values) == 1 and found.values[0] > 0:
        return _first_seeds(found.values[0])
    return Seeds(found.values)


def _counted_seeds(words: Words, index: int) -> Seeds | None:
    """`3 seeds`, `over five random seeds`, `repeat each 3 times`."""
    number = words.number(index)
    if not isinstance(number, int) or number <= 0 or not words.is_free(index):
        return None
    noun = index + 1
    while words.at(noun) in ("random", "different", "independent", "fixed"):
        noun += 1
    repeated = words.at(noun) != "times" or any(
        words.at(place).startswith(("repeat", "run")) for place in range(max(0, index - 5), index)
    )
    if words.at(noun) not in _REPEATS or not repeated:
        return None
    words.take(index, noun)
    listed = _listed_seeds(words, noun)  # 3 seeds: 7, 8, 9
    words.take(noun, noun + 1 + _with_seeds(words, noun + 1))
    return listed or _first_seeds(number)


def _with_seeds(words: Words, index: int) -> int:
    """How many words `with different seeds` takes, behind `10 times`."""
    place = index + (words.at(index) in ("with", "over", "using"))
    place += words.at(place) in ("random", "different", "independent", "other")
    return place + 1 - index if words.at(place) == "seeds" and words.number(place + 1) is None else 0


def _first_seeds(count: int) -> Seeds:
    return Seeds(too_many=count) if count > MOST_VALUES else Seeds(tuple(range(count)))


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
        counts = words.at(index + 1) in nouns and words.at(index + 2) not in SECONDS  # 20 GPU hours are no GPUs
        if isinstance(number, int) and number > 0 and counts and words.is_free(index) and not _is_heading(words, index):
            words.take(_back(words, index), index + 2 + (words.at(index + 2) in _AT_MOST_BEHIND))
            return number
        if (
            words.at(index) in nouns
            and words.at(index + 1) in (":", "=", "<", "<=")
            and isinstance(words.number(index + 2), int)
        ):
            words.take(index, index + 3)
            return int(words.number(index + 2) or 0)
    return None


def _is_heading(words: Words, index: int) -> bool:
    """`4 Experiments`, a section of a paper: the number begins its line, and the noun has a capital."""
    return words.at(index - 1) in ("", "\n", "#") and words.tokens[index + 1].shown[0].isupper()


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
