"""The numbers that a text holds, as written: how exactly, in which unit, and which of them claim nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_UNITS = {
    "seconds": {"ms": 0.001, "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "mins": 60}
    | {"minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600}
    | {"d": 86400, "day": 86400, "days": 86400},
    "bytes": {"b": 1, "byte": 1, "bytes": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
    | {"kib": 2**10, "mib": 2**20, "gib": 2**30},
    "count": {"k": 1e3, "x": 1, "×": 1},
}
_LARGEST_POWER = 300  # of ten that a float holds
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
# Each begins where a word does and nowhere inside of it, so that a very long word is read once and not once a letter.
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
    decimals: int  # that the writer gave, of `value`
    percent: bool
    unit: str  # seconds, bytes, count or nothing
    scale: float  # of the unit

    @property
    def half_a_digit(self) -> float:
        return 0.5 * 10.0 ** min(-self.decimals, _LARGEST_POWER)


def blanked(text: str, *patterns: re.Pattern[str]) -> str:
    """The same length, with spaces for what matches."""
    for pattern in patterns:
        text = pattern.sub(lambda found: _blank(found.group(0)), text)
    return text


def _blank(found: str) -> str:
    return "".join(c if c == "\n" else " " for c in found)


def moments(text: str) -> Iterator[re.Match[str]]:
    return _MOMENT.finditer(blanked(text, ID, CITATION))


def numbers(text: str) -> Iterator[Written]:
    """Not those in ids, citations, names, dates, nor those that only order a text."""
    plain = blanked(text, CITATION, ID, _MOMENT, _STRUCTURE)
    plain = _NAMES.sub(lambda m: m.group(0) if _PLAIN_NUMBER.fullmatch(m.group(0)) else _blank(m.group(0)), plain)
    for found in _NUMBER.finditer(plain):
        if not _begins_a_name(plain, found):
            yield _written(text, found)


def _begins_a_name(text: str, found: re.Match[str]) -> bool:
    """3x3, 5-fold; but not 3/4 or 3-4."""
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
