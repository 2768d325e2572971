"""The numbers in a text as they are written, and whether a number matches a value: rounding, percentages and units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from labwright.agent.evidence.evidence import Reading

_UNITS = {
    "seconds": {"ms": 0.001, "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "mins": 60}
    | {"minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600}
    | {"d": 86400, "day": 86400, "days": 86400},
    "bytes": {"b": 1, "byte": 1, "bytes": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
    | {"kib": 2**10, "mib": 2**20, "gib": 2**30},
    "count": {"k": 1e3, "x": 1, "×": 1},
}
_LARGEST_POWER = 300  # of ten that a float can hold
_UNIT = "|".join(sorted({unit for units in _UNITS.values() for unit in units}, key=len, reverse=True))
_NUMBER = re.compile(
    r"(?<![\w.,/@#:-])(?P<sign>[+\-−±~≈]{0,2})"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\.\d+|\d+)(?P<exponent>[eE][+-]?\d+)?"
    rf"(?:(?P<percent>\s?%|\s(?:percent|per cent)\b)|\s?(?P<unit>{_UNIT})\b)?"
    r"(?P<after>[\w/-]?)",
    re.IGNORECASE,
)
_MOMENT = re.compile(
    r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?\b"
)
ID = re.compile(r"\b(?:run|sweep|plan|alert|chat|ask|note)-[0-9a-z]{10}\b")
CITATION = re.compile(r"\[(E\d+(?:\s*[,;]\s*E\d+)*)\]")
# Each starts at the start of a word, so that a very long word is read once and not once per letter.
_NAMES = re.compile(
    r"https?://\S+|(?<![\w.~/-])(?:[\w.~-]*/)+[\w.~-]+"
    r"|(?<![\w-])[\w-]+\.(?:py|sh|ya?ml|json|jsonl|toml|txt|md|csv|log|pt|ckpt|ipynb|cfg)\b"
    r"|(?<![\w-])(?=[\w-]*[A-Za-z_])[\w-]*\d[\w-]*\b(?:\.\d[\w-]*)*"  # also Qwen2.5-7B
)
_PLAIN_NUMBER = re.compile(rf"[+\-−±~≈]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:{_UNIT}|/\d+)?", re.IGNORECASE)
_STRUCTURE = re.compile(
    r"^[^\S\n]*(?:[-*][^\S\n]+)?(?:#+[^\S\n]*)?\(?\d+[.)](?=\s|$)|^[^\S\n]*#+[^\S\n]+\d+\b"
    r"|^[^\S\n]*\|[^\S\n]*\d{1,2}[^\S\n]*(?=\|)"
    r"|(?<!\bat )(?<!\bafter )(?<!\buntil )(?<!\bby )\bstep\s+\d+\b"
    r"|\b(?:option|section|part|phase|question|example|figure|table|item|line|stage|point|choice|version|python|cuda"
    r"|torch|pytorch|v)\s+\d+(?:\.\d+)*|\b\d+(?:st|nd|rd|th)\b",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    text: str
    start: int
    end: int
    value: float
    decimals: int  # digits after the point, as written
    percent: bool
    unit: str  # seconds, bytes, count or empty
    scale: float  # of the unit

    @property
    def half_a_digit(self) -> float:
        return 0.5 * 10.0 ** min(-self.decimals, _LARGEST_POWER)


def blanked(text: str, *patterns: re.Pattern[str]) -> str:
    """Return the text with spaces in place of what matches."""
    for pattern in patterns:
        text = pattern.sub(lambda found: _blank(found.group(0)), text)
    return text


def _blank(found: str) -> str:
    return "".join(c if c == "\n" else " " for c in found)


def moments(text: str) -> Iterator[re.Match[str]]:
    return _MOMENT.finditer(blanked(text, ID, CITATION))


def numbers(text: str) -> Iterator[Written]:
    """Yield the numbers of a text, except in ids, citations, names and dates, and those that only structure it."""
    plain = blanked(text, CITATION, ID, _MOMENT, _STRUCTURE)
    plain = _NAMES.sub(lambda m: m.group(0) if _PLAIN_NUMBER.fullmatch(m.group(0)) else _blank(m.group(0)), plain)
    for found in _NUMBER.finditer(plain):
        if not _begins_a_name(plain, found):
            yield _written(text, found)


def _begins_a_name(text: str, found: re.Match[str]) -> bool:
    """Return True for 3x3 and 5-fold, but not for 3/4 or 3-4."""
    follows = found["after"]
    return bool(follows) and follows != "/" and (follows != "-" or text[found.end() : found.end() + 1].isalpha())


def _written(text: str, found: re.Match[str]) -> Written:
    digits, exponent = found["digits"].replace(",", ""), found["exponent"] or ""
    power = int(exponent[1:]) if exponent else 0
    decimals = len(digits.partition(".")[2]) - power
    sign = -1.0 if found["sign"] and found["sign"][-1] in "-−" else 1.0
    unit = (found["unit"] or "").lower()
    kind = next((name for name, units in _UNITS.items() if unit in units), "")
    end = found.end("unit") if found["unit"] else found.end("percent") if found["percent"] else found.end("digits")
    if found["exponent"] and not found["unit"] and not found["percent"]:
        end = found.end("exponent")
    start = found.start("sign")
    return Written(
        text=text[start:end],
        start=start,
        end=end,
        value=sign * float(f"{digits}{exponent}"),
        decimals=decimals,
        percent=found["percent"] is not None,
        unit=kind,
        scale=float(_UNITS[kind][unit]) if kind else 1.0,
    )


_COARSEST = 0.05  # rounding may change a number by at most this share: 0.93 is not 1
_SLACK = 1e-9
_EITHER_SIGN = ("difference", "percent", "lead")
_NAMES_PERCENT = re.compile(r"percent|pct|utilization|%", re.IGNORECASE)
_MEASURED = re.compile(r"last|min|max|mean|of_first|of_second|place_\d+")
# Words beside a number that say which value it is. They count only if the evidence has that value.
_SAYS_WHICH = {
    "last": re.compile(r"\b(?:final|last|latest|ended? (?:at|with))\b", re.IGNORECASE),
    "min": re.compile(r"\b(?:minimum|lowest|min)\b", re.IGNORECASE),
    "max": re.compile(r"\b(?:maximum|highest|peak(?:s|ed)?|max)\b", re.IGNORECASE),
    "mean": re.compile(r"\b(?:mean|average|averaged|avg)\b", re.IGNORECASE),
    "std": re.compile(r"\b(?:std|standard deviation)\b", re.IGNORECASE),
}

# Small whole numbers beside a measured one. They count only if the text mentions them.
_SPEAKS_OF = {
    "last_step": re.compile(r"\b(?:steps?|epochs?|iterations?)\b", re.IGNORECASE),
    "count": re.compile(r"\b(?:count|points?|values?|runs?|logged|there (?:is|are))\b", re.IGNORECASE),
    "n": re.compile(r"\b(?:n|runs?|seeds?|repetitions?)\b", re.IGNORECASE),
    "place": re.compile(r"\b(?:place|rank(?:s|ed)?|of)\b", re.IGNORECASE),
}


def is_shown(written: Written, clause: str, seen: Reading) -> bool:
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


def _is_percentage(written: Written, name: str, given: float, seen: Reading) -> bool:
    factors = [100] if not _NAMES_PERCENT.search(name) else []
    factors += [1] if _may_be_in_percent(name, given, seen) else []
    return any(_percent(written, value * factor) for value in _signed(name, given) for factor in factors)


def _may_be_in_percent(name: str, value: float, seen: Reading) -> bool:
    """Return False for a share between 0 and 1: an accuracy of 0.93 is not 0.93 %."""
    measured = [value for name, value in seen.values.items() if _MEASURED.fullmatch(name)]
    names = _NAMES_PERCENT.search(f"{name} {seen.key}")
    return names is not None or (name != "ratio" and any(abs(one) > 1 for one in (value, *measured)))


def _is_quoted(written: Written, seen: Reading) -> bool:
    """Return whether a shown text has the number as written, or before rounding."""
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
    """Return 1 for units of GB and more: people write GB for 2**30 bytes, and MB for 2**20."""
    return 1 if written.scale >= 1e9 else 0


def _percent(written: Written, value: float) -> bool:
    """Compare percentages. Rounding never makes 0 % or 100 %."""
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
