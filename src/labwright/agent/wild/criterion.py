"""When a goal is met: the number that it names, read by rules, and held against what runs reported."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import chain
from typing import Any

from labwright.domain.search.results import ConfigurationResult
from labwright.planning.goals.limits import COUNTED, SECONDS
from labwright.planning.goals.tokens import number_of
from labwright.planning.results.words import amount, spread

_NUMBER = r"(?P<number>[-+]?(?:\d{1,20}(?:\.\d{1,20})?|\.\d{1,20})(?:e[-+]?\d{1,3})?(?: ?%| per ?cent)?)(?!\.?\w)"
_COUNTS = re.compile(rf" ?(?:{'|'.join(sorted(COUNTED))})\b", re.IGNORECASE)  # `at most 20 runs` is a budget
_TIME = re.compile(rf" ?(?:{'|'.join(sorted(SECONDS))})\b", re.IGNORECASE)  # so is `in under 2 hours`
_WORD = r"[A-Za-z][\w./-]{0,60}"  # bounded, as is what is read: a goal is anybody's text
_LITTLE = r"(?!(?:of|to|is|at|be|by|with|in|using|use|and|or|for|from|on|within|a|an|the|should|must)\b)"
_NAME = rf"(?<![\w./-])(?P<name>{_LITTLE}{_WORD}(?: {_LITTLE}{_WORD})?)"
_UP = r">=|≥|>|at least|above|over|exceeds?|more than|higher than|better than"
_DOWN = r"<=|≤|<|at most|below|under|less than|lower than"
_REACH = (
    r"\b(?:reach(?:es)?|hit|achieve|attain|get|bring|beat|push|raise|increase|improve|reduce|lower|decrease"
    r"|minimi[sz]e|maximi[sz]e)\b"
)
_BETWEEN = r"(?: from [-+\d.]{1,20}%?)?(?: (?:is|be|of|to|reaches|must be|should be|down to|up to)){0,3}"
_RULES = (
    re.compile(rf"{_NAME}{_BETWEEN} ?(?:(?P<up>{_UP})|(?P<down>{_DOWN})) ?{_NUMBER}", re.IGNORECASE),
    re.compile(rf"{_REACH}(?: (?:a|an|the|at least|some)){{0,3}} {_NAME}{_BETWEEN} ?=? ?{_NUMBER}", re.IGNORECASE),
    re.compile(rf"{_REACH}(?: (?:a|an|at least|at most|about)){{0,3}} {_NUMBER} (?:of |in )?{_NAME}", re.IGNORECASE),
)
_OF_A_METRIC = re.compile(rf"{_NAME}{_BETWEEN} ?[=:]? ?{_NUMBER}", re.IGNORECASE)  # `val_acc = 0.9`; not `lr = 0.9`
_LONGEST = 4000
_LEAST = 2  # runs: one may be luck


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A number in a goal, and the goal without it: what is left is read by the rules for goals."""

    threshold: float
    percent: bool
    way: str  # max, min; empty where the metric's own direction decides
    name: str
    words: str
    rest: str


@dataclass(frozen=True, slots=True)
class Names:
    """What flags and metrics of a project may be called in a goal."""

    flags: frozenset[str] = frozenset()
    metrics: frozenset[str] = frozenset()

    def is_flag(self, name: str) -> bool:
        return _is_one_of(self.flags, name)

    def is_metric(self, name: str) -> bool:
        return _is_one_of(self.metrics, name)


def read_criterion(goal: str, names: Names = Names()) -> Wanted | None:
    """A limit on a flag ("lr below 0.1") or on runs and hours says nothing of a result."""
    told = (match for rule in _RULES for match in rule.finditer(goal, 0, _LONGEST))
    plain = (match for match in _OF_A_METRIC.finditer(goal, 0, _LONGEST) if names.is_metric(match["name"]))
    return next((found for match in chain(told, plain) if (found := _wanted(goal, match, names))), None)


def _wanted(goal: str, match: re.Match[str], names: Names) -> Wanted | None:
    text = re.sub(" ?(?:%| per ?cent)$", "%", match["number"], flags=re.IGNORECASE)
    number = number_of(text)
    if number is None or not math.isfinite(number) or _limits_something_else(goal, match, names):
        return None
    found = match.groupdict()
    return Wanted(
        threshold=float(number),
        percent=text.endswith("%"),
        way="max" if found.get("up") else "min" if found.get("down") else "",
        name=match["name"],
        words=match.group().strip(),
        rest=f"{goal[: match.start()]}{match['name']} {goal[match.end() :]}".strip(),
    )


def _limits_something_else(goal: str, match: re.Match[str], names: Names) -> bool:
    if names.is_flag(match["name"]) or _COUNTS.match(goal, match.end("number")):
        return True
    return bool(_TIME.match(goal, match.end("number"))) and not names.is_metric(match["name"])


def one_sided(goal: str, names: Names) -> str:
    """`lr below 0.1`: a range of which only one end is named. `lr over 0.1, 0.2` lists values."""
    matches = _RULES[0].finditer(goal, 0, _LONGEST)
    limits = (found for found in matches if names.is_flag(found["name"]) and (found["up"] or "") != "over")
    return next((found.group().strip() for found in limits), "")


def _is_one_of(known: frozenset[str], name: str) -> bool:
    """`the final val_acc` is `val_acc`."""
    words = name.lower().split()
    return any(" ".join(words[at:]) in known for at in range(len(words)))


def criterion_of(wanted: Wanted | None, metric: dict[str, Any]) -> dict[str, Any]:
    """As a record has it."""
    way = "at least" if metric["goal"] == "max" else "at most"
    if wanted is None:
        words = f"{metric['key']} as {'high' if metric['goal'] == 'max' else 'low'} as it goes"
        return {"text": f"{words}: until nothing improves beyond noise", "threshold": None, "percent": False}
    shown = f"{wanted.threshold * 100:g} %" if wanted.percent else f"{wanted.threshold:g}"
    return {"text": f"{metric['key']} {way} {shown}", "threshold": wanted.threshold, "percent": wanted.percent}


def reaches(criterion: dict[str, Any], goal: str, mean: float) -> bool:
    """Whether a number is as good as wanted."""
    threshold: float | None = criterion["threshold"]
    if threshold is None:
        return False
    if criterion["percent"] and abs(mean) > 1:  # the script counts to a hundred
        threshold *= 100
    return mean >= threshold if goal == "max" else mean <= threshold


def is_met(criterion: dict[str, Any], goal: str, found: ConfigurationResult, seeds: int) -> bool:
    """By the mean of several runs; by one alone only where one is all that was asked for."""
    return found.mean is not None and found.n >= min(_LEAST, seeds) and reaches(criterion, goal, found.mean)


def met_in_words(criterion: dict[str, Any], metric: str, found: ConfigurationResult) -> str:
    limit = amount(criterion["threshold"])
    return f"met with evidence: {metric} {spread(found)}, wanted {limit}; {', '.join(found.run_ids[: found.n])}"
