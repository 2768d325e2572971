"""A goal as words, numbers and signs, each either read by a rule or left over."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

LONGEST = 8_000
AND_SO_ON = "…"  # between the numbers of a list; it ends no sentence
_UNITS = r"(?:h|hr|hrs|hours?|m|min|mins|minutes?|s|sec|secs|seconds?|d|days?|x)\b"
_TOKEN = re.compile(
    rf"""(?P<power>(?<![\w.])(?:10|2)(?:\^|\*\*)[-+]?\d{{1,3}}(?!\w))
    |(?P<number>(?:(?<![\w.)])[-+])?(?<![\w.])(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d{{1,3}})?(?:%|k\b)?(?:(?!\w)|(?={_UNITS})))
    |(?P<word>-{{0,2}}[^\W\d]\w*(?:[.-]\w+)*)
    |(?P<blob>\w+(?:[.-]\w+)*)
    |(?P<sign>[^\s]|\n)""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "twenty": 20,
}  # fmt: skip
VARYING = {
    "vary", "varying", "sweep", "sweeping", "tune", "tuning", "search", "explore", "find", "best", "optimal",
    "optimum", "compare", "try", "trying", "test", "testing", "different", "effect", "effects", "influence", "impact",
    "ablate", "ablation", "which", "what", "how", "optimize", "optimise", "scan", "study", "various", "several",
    "grid", "right", "good", "does", "over", "all", "every", "each", "between", "comparing", "matters", "ideal",
    "tuned",
}  # fmt: skip
_BEHIND_VALUES = {"for", "with", "on", "at", "and", "or", "vs", "versus"}
_STOPS = {".", ";", "!", "?", "\n"}


@dataclass(frozen=True, slots=True)
class Token:
    text: str  # in lower case
    shown: str
    number: float | int | None
    start: int
    end: int

    @property
    def is_stop(self) -> bool:
        return self.text in _STOPS

    @property
    def is_word(self) -> bool:
        return self.number is None and any(letter.isalpha() for letter in self.text)


@dataclass(slots=True)
class Words:
    """The tokens of a goal, and which of them a rule has taken."""

    text: str
    tokens: list[Token]
    cut: bool = False
    _taken: set[int] = field(default_factory=set)
    _index: dict[str, list[int]] = field(default_factory=dict)  # where each word stands
    _stops: list[int] = field(default_factory=list)  # where sentences end

    def __post_init__(self) -> None:
        for index, token in enumerate(self.tokens):
            self._index.setdefault(token.text, []).append(index)
            if token.is_stop:
                self._stops.append(index)

    def take(self, start: int, end: int) -> None:
        self._taken.update(range(start, end))

    def is_free(self, index: int) -> bool:
        return index not in self._taken

    def at(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def number(self, index: int) -> float | int | None:
        return self.tokens[index].number if 0 <= index < len(self.tokens) else None

    def matches(self, index: int, phrase: tuple[str, ...]) -> bool:
        return all(self.at(index + offset) == word for offset, word in enumerate(phrase))

    def places(self, phrase: tuple[str, ...]) -> Iterator[int]:
        return (
            (index for index in self._index.get(phrase[0], ()) if self.matches(index, phrase)) if phrase else iter(())
        )

    def clause_end(self, index: int) -> int:
        place = bisect_left(self._stops, index)
        return self._stops[place] if place < len(self._stops) else len(self.tokens)

    def line(self, index: int) -> int:
        return sum(place < index for place in self._index.get("\n", ()))

    def is_loose_number(self, index: int) -> bool:
        """A number that counts nothing: probably a value in words that no rule knows."""
        following = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        counts = following is not None and following.is_word and following.text not in _BEHIND_VALUES
        return self.number(index) is not None and self.is_free(index) and not counts

    def is_tight(self, index: int) -> bool:
        """No space on either side of it."""
        around = self.tokens[max(0, index - 1) : index + 2]
        return len(around) == 3 and all(left.end == right.start for left, right in pairwise(around))

    def shown(self, start: int, end: int) -> str:
        return (
            self.text[self.tokens[start].start : self.tokens[min(end, len(self.tokens)) - 1].end] if start < end else ""
        )

    def unread(self) -> list[Token]:
        return [token for index, token in enumerate(self.tokens) if self.is_free(index)]


def split(text: str) -> Words:
    """Only the beginning of a very long goal is read; `cut` says so."""
    plain = _RAISED.sub(lambda match: "^" + match[1].translate(_LOWERED), text[:LONGEST])
    plain = _plain_numbers(unicodedata.normalize("NFKC", plain).translate(_PLAIN_SIGNS))
    tokens = [_token(match) for match in _TOKEN.finditer(plain)]
    return Words(plain, tokens, len(text) > LONGEST)


def _plain_numbers(text: str) -> str:
    """`0.1..0.5`, `3 x 10^-4`, `0.1; 0.2`, and `0,01` or `1,024` where nobody can mean a list of numbers."""
    text = _GOES_ON.sub(rf"\1{AND_SO_ON} ", text)
    text = re.sub(r"(?<=\d)\s*\.\.+\s*(?=\d)", " to ", text)
    text = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)\s?[x*·]\s?10(?:\^|\*\*)([-+]?\d{1,3})(?!\w)", r"\1e\2", text)
    if _SURE_THOUSANDS.search(text):
        text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    text = _COMMA.sub(r"\1.\2", text) if _SURE_COMMA.search(text) else text
    return _PARTED.sub(lambda match: match[0].replace(";", ","), text)


_RAISED = re.compile(r"(?<=\d)([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})")
_LOWERED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d+)(?![.,]?\d)")
_SURE_COMMA = re.compile(r"(?<![\d.,])0,0\d+(?![.,]?\d)")
_GOES_ON = re.compile(r"(\d\s*,\s*(?:(?:\d[\d.e+-]*\d|\d)\s+)?)\.{2,}\s*,?\s*(?=\d)", re.IGNORECASE)  # 1, 2, ..., 5
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![.,]?\d)")
_SURE_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})*,0\d\d(?:,\d{3})*(?![.,]?\d)")  # 8,192 may be a list
_A_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d{1,3})?"
_PARTED = re.compile(  # a list, unless its last number belongs to what follows: lr 0.1; 3 seeds
    rf"(?<![\w.]){_A_NUMBER}(?:\s*;\s*(?:(?:and|or)\s+)?{_A_NUMBER})+"
    r"(?=\s*(?:$|[.;!?\n)}\]](?!\d)|,(?!\s*[\d.])|(?:for|with|on|in)\b))",
    re.IGNORECASE,
)
_PLAIN_SIGNS = str.maketrans({"–": "-", "—": "-", "−": "-", "×": "x", "…": ".", "“": '"', "”": '"', "’": "'"})


def _token(match: re.Match[str]) -> Token:
    shown = match.group()
    number: float | int | None = None
    if match.lastgroup == "power":
        base, _, exponent = shown.replace("**", "^").partition("^")
        number = _tidy(float(base) ** int(exponent)) if int(exponent) < 64 else None
    elif match.lastgroup == "number":
        number = number_of(shown)
    elif shown.lower() in _NUMBER_WORDS:
        number = _NUMBER_WORDS[shown.lower()]
    return Token(shown.lower(), shown, number, match.start(), match.end())


def number_of(text: str) -> float | int | None:
    scale = 1_000 if text[-1] in "kK" else 1
    plain = text.rstrip("kK%")
    if len(plain) > 40:
        return None
    value = float(plain) * scale / (100 if text.endswith("%") else 1)
    if not math.isfinite(value) or (value == 0 and re.search(r"[1-9]", plain.lower().partition("e")[0])):
        return None  # no float holds it
    whole = re.fullmatch(r"[-+]?\d+", plain) is not None and not text.endswith("%")
    return int(value) if whole and abs(value) < 1e15 else _tidy(value)


def _tidy(value: float) -> float:
    return float(f"{value:.12g}")
