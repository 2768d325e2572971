"""Whether a number as written is a value as it is: rounding, percentages and units, but no more than honest ones."""

from __future__ import annotations

import re

from labwright.agent.evidence.evidence import Seen
from labwright.agent.evidence.numbers import Written, numbers

_COARSEST = 0.05  # rounding to few digits may change a number by this share at most: 0.93 is not 1
_SLACK = 1e-9
_EITHER_SIGN = ("difference", "percent", "lead")
_NAMES_PERCENT = re.compile(r"percent|pct|utilization|%", re.IGNORECASE)
_MEASURED = re.compile(r"last|min|max|mean|of_first|of_second|place_\d+")
# What a word beside a number says of which value it is; only where the evidence has that value.
_SAYS_WHICH = {
    "last": re.compile(r"\b(?:final|last|latest|ended? (?:at|with))\b", re.IGNORECASE),
    "min": re.compile(r"\b(?:minimum|lowest|min)\b", re.IGNORECASE),
    "max": re.compile(r"\b(?:maximum|highest|peak(?:s|ed)?|max)\b", re.IGNORECASE),
    "mean": re.compile(r"\b(?:mean|average|averaged|avg)\b", re.IGNORECASE),
    "std": re.compile(r"\b(?:std|standard deviation)\b", re.IGNORECASE),
}

# Small whole numbers that stand beside a measured one: only where the words speak of them.
_SPEAKS_OF = {
    "last_step": re.compile(r"\b(?:steps?|epochs?|iterations?)\b", re.IGNORECASE),
    "count": re.compile(r"\b(?:count|points?|values?|runs?|logged|there (?:is|are))\b", re.IGNORECASE),
    "n": re.compile(r"\b(?:n|runs?|seeds?|repetitions?)\b", re.IGNORECASE),
    "place": re.compile(r"\b(?:place|rank(?:s|ed)?|of)\b", re.IGNORECASE),
}


def is_shown(written: Written, clause: str, seen: Seen) -> bool:
    named = {name for name, words in _SAYS_WHICH.items() if name in seen.values and words.search(clause)}
    values = {name: value for name, value in seen.values.items() if not named or name in named | {"std", "n"}}
    spoken = {
        name: value for name, value in values.items() if name not in _SPEAKS_OF or _SPEAKS_OF[name].search(clause)
    }
    if written.percent:
        shown = any(_is_percentage(written, name, value, seen) for name, value in spoken.items())
    else:
        shown = any(_means(written, value, name) for name, given in spoken.items() for value in _signed(name, given))
    return shown or _is_quoted(written, seen)


def _is_percentage(written: Written, name: str, given: float, seen: Seen) -> bool:
    factors = [100] if not _NAMES_PERCENT.search(name) else []
    factors += [1] if _may_be_in_percent(name, given, seen) else []
    return any(_percent(written, value * factor) for value in _signed(name, given) for factor in factors)


def _may_be_in_percent(name: str, value: float, seen: Seen) -> bool:
    """Not a share, which stays between 0 and 1: an accuracy of 0.93 is not 0.93 %."""
    measured = [value for name, value in seen.values.items() if _MEASURED.fullmatch(name)]
    names = _NAMES_PERCENT.search(f"{name} {seen.key}")
    return names is not None or (name != "ratio" and any(abs(one) > 1 for one in (value, *measured)))


def _is_quoted(written: Written, seen: Seen) -> bool:
    """In words that were shown the number must stand as it is written, or be rounded from it."""
    return any(_rounds_to(written, found.value * found.scale) for text in seen.texts for found in numbers(text))


def _signed(name: str, value: float) -> list[float]:
    return [value, -value] if name in _EITHER_SIGN else [value]


def _means(written: Written, value: float, name: str) -> bool:
    if written.unit == "seconds" and name.endswith("seconds"):
        return _rounds_to(written, value)
    if written.unit == "bytes" and name.endswith(("_mb", "size")):
        units = (1e6, 2**20) if name.endswith("_mb") else (1.0,)
        return any(_rounds_to(written, value * unit) for unit in units) or (
            name.endswith("_mb") and _rounds_to(written, value * 2**20 / 1.073741824 ** _gibis(written))
        )
    if written.unit == "seconds" and not name.endswith("seconds"):
        return False
    return _rounds_to(written, value)


def _gibis(written: Written) -> int:
    """People write GB for 2**30 bytes, and MB for 2**20."""
    return 1 if written.scale >= 1e9 else 0


def _percent(written: Written, value: float) -> bool:
    """Never all and never nothing by rounding."""
    if written.value in (0.0, 100.0) and abs(value - written.value) > _SLACK:
        return False
    return _rounds_to(written, value)


def _rounds_to(written: Written, value: float) -> bool:
    shown, room = written.value * written.scale, written.half_a_digit * written.scale
    gap = abs(shown - value)
    if gap <= _SLACK * max(1.0, abs(value)):
        return True
    if float(value).is_integer() and written.scale == 1.0 and abs(value) < 1e6:
        return False  # a count is exact
    return gap <= room * (1 + 1e-6) and gap <= _COARSEST * abs(value)
