"""When a goal is met: the number that it names, read by rules, and held against what runs reported."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from labwright.domain.sweep_results import Configuration
from labwright.planning.goals.limits import COUNTED
from labwright.planning.goals.words import number_of
from labwright.planning.results.words import amount, spread

_NUMBER = r"(?P<number>[-+]?(?:\d{1,20}(?:\.\d{1,20})?|\.\d{1,20})(?:e[-+]?\d{1,3})?(?: ?%)?)(?!\.?\w)"
_COUNTS = rf"(?! ?(?:{'|'.join(sorted(COUNTED))})\b)"  # `at most 20 runs` is a budget
_WORD = r"[A-Za-z][\w./-]{0,60}"  # bounded, as is what is read: a goal is anybody's text
_LITTLE = r"(?!(?:of|to|is|at|be|by|with|in|using|use|and|or|for|from|on|within|a|an|the)\b)"
_NAME = rf"(?<![\w./-])(?P<name>{_LITTLE}{_WORD}(?: {_LITTLE}{_WORD})?)"
_UP = r">=|≥|>|at least|above|over|exceeds?|more than|higher than|better than"
_DOWN = r"<=|≤|<|at most|below|under|less than|lower than"
_REACH = r"\b(?:reach(?:es)?|hit|achieve|attain|get|bring)\b"
_BETWEEN = r"(?: (?:is|be|of|to|reaches|must be|should be|down to|up to)){0,3}"
_RULES = (
    re.compile(rf"{_NAME}{_BETWEEN} ?(?:(?P<up>{_UP})|(?P<down>{_DOWN})) ?{_NUMBER}{_COUNTS}", re.IGNORECASE),
    re.compile(
        rf"{_REACH}(?: (?:a|an|the|at least|some)){{0,3}} {_NAME}{_BETWEEN} ?=? ?{_NUMBER}{_COUNTS}", re.IGNORECASE
    ),
    re.compile(rf"{_REACH}(?: (?:a|an|at least|at most|about)){{0,3}} {_NUMBER} (?:of |in )?{_NAME}", re.IGNORECASE),
)
_LONGEST = 4000
_LEAST = 2  # runs: one may be luck


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A number in a goal, and the goal without it: what is left is read by the rules for goals."""

    threshold: float
    percent: bool
    way: str  # max, min; empty where the metric's own direction decides
    words: str
    rest: str


def read_criterion(goal: str, flags: Collection[str] = ()) -> Wanted | None:
    """`flags`: ways to name a flag. A limit on one of these ("lr below 0.1") says nothing of a result."""
    matches = (match for rule in _RULES for match in rule.finditer(goal, 0, _LONGEST))
    return next((found for match in matches if (found := _wanted(goal, match, flags))), None)


def _wanted(goal: str, match: re.Match[str], flags: Collection[str]) -> Wanted | None:
    text = match["number"].replace(" ", "")
    number = number_of(text)
    if number is None or not math.isfinite(number) or _names_one_of(flags, match["name"]):
        return None
    found = match.groupdict()
    return Wanted(
        threshold=float(number),
        percent=text.endswith("%"),
        way="max" if found.get("up") else "min" if found.get("down") else "",
        words=match.group().strip(),
        rest=f"{goal[: match.start()]}{match['name']} {goal[match.end() :]}".strip(),
    )


def one_sided(goal: str, flags: Collection[str]) -> str:
    """`lr below 0.1`: a range of which only one end is named. `lr over 0.1, 0.2` lists values."""
    matches = _RULES[0].finditer(goal, 0, _LONGEST)
    limits = (found for found in matches if _names_one_of(flags, found["name"]) and (found["up"] or "") != "over")
    return next((found.group().strip() for found in limits), "")


def _names_one_of(flags: Collection[str], name: str) -> bool:
    words = name.lower().split()
    return any(" ".join(words[at:]) in flags for at in range(len(words)))


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


def is_met(criterion: dict[str, Any], goal: str, found: Configuration, seeds: int) -> bool:
    """By the mean of several runs; by one alone only where one is all that was asked for."""
    return found.mean is not None and found.n >= min(_LEAST, seeds) and reaches(criterion, goal, found.mean)


def met_in_words(criterion: dict[str, Any], metric: str, found: Configuration) -> str:
    limit = amount(criterion["threshold"])
    return f"met with evidence: {metric} {spread(found)}, wanted {limit}; {', '.join(found.run_ids[: found.n])}"
