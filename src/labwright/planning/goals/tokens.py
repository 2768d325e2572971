"""Split a goal into words, numbers and signs. Rules mark the tokens they understand as taken."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

LONGEST = 8_000  # characters of a goal that are read
_TOKEN = re.compile(
    r"""(?P<power>(?<![\w.])(?:10|2)(?:\^|\*\*)[-+]?\d{1,3}(?!\w))
    |(?P<number>(?:(?<![\w.)])[-+])?(?<![\w.])(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d{1,3})?(?:%|k\b)?(?:(?!\w)|(?=(?:h|min|m|s|x)\b)))
    |(?P<word>-{0,2}[^\W\d]\w*(?:[.-]\w+)*)
    |(?P<blob>\w+(?:[.-]\w+)*)
    |(?P<sign>[^\s]|\n)""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER_WORDS = {
    name: number
    for number, name in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1)
}
_STOPS = {".", ";", "!", "?", "\n"}
_SUPERSCRIPT = re.compile(r"(?<=\d)([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})")
_PLAIN_DIGITS = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_PLAIN_SIGNS = str.maketrans({"–": "-", "—": "-", "−": "-", "×": "x", "“": '"', "”": '"', "’": "'"})
_TIMES_TEN = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?[x*·]\s?10(?:\^|\*\*)([-+]?\d{1,3})(?!\w)")
# `0,01` and `1,024` can be one number or two.
_DOUBTFUL = re.compile(r"(?<![\d.,])(?:\d+,0\d+|0,\d+)(?![\d.]|,\d)")
# Words that say nothing about the experiment. They are not reported as unread.
_FILLER_TEXT = """
a about across after again against all also among an and any are as at average baseline be because been best better
between both but by can check choose code compare compared comparing comparison config configuration configurations
constant could current default defaults determine different do does each effect effects either else every everything
exactly experiment experiments explore figure find finding fit fixed for from get give given go goal good grid has
have help higher highest hold how hyperparameter hyperparameters i if impact improve in increase influence into
investigate is it its judged just keep know learn least less let like list look lower lowest make matter matters
maximise maximize maximum me mean measure metric minimise minimize minimum model more most much my need network
nothing now number of off on only optimal optimise optimize or other our out over overall parameter parameters per
performance performs pick plain plan please possible primary project python quick quickly range ranges reduce repeat
repeated report reproduce replicate rerun rest result results right run running runs same scan script search see
select set setting settings should show simple std stability sweep sweeping take test than that the their them then
there these they this those through to top total train training tried try trying tune tuned tuning up use used using
value values variance various vary varying versus vs want was way we well what when where whether which while will
with within work works would x you your budget limit
"""
_FILLER = frozenset(_FILLER_TEXT.split())


@dataclass(frozen=True, slots=True)
class Token:
    text: str  # in lower case
    shown: str
    number: float | int | None
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        return self.number is None and any(letter.isalpha() for letter in self.text)

    @property
    def is_filler(self) -> bool:
        return self.text in _FILLER


@dataclass(slots=True)
class Tokens:
    text: str
    tokens: list[Token]
    was_cut: bool = False
    doubtful: set[int] = field(default_factory=set)  # numbers such as 0,01 that may be one number or two
    script: set[int] = field(default_factory=set)  # where the script is named
    _taken: set[int] = field(default_factory=set)
    _places: dict[str, list[int]] = field(default_factory=dict)
    _stops: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for index, token in enumerate(self.tokens):
            self._places.setdefault(token.text, []).append(index)
            if token.text in _STOPS:
                self._stops.append(index)

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, start: int, end: int) -> None:
        self._taken.update(range(start, end))

    def is_free(self, index: int) -> bool:
        return index not in self._taken

    def at(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def number(self, index: int) -> float | int | None:
        return self.tokens[index].number if 0 <= index < len(self.tokens) else None

    def find(self, phrase: tuple[str, ...]) -> Iterator[int]:
        """Yield each place of a phrase."""
        for index in self._places.get(phrase[0], ()) if phrase else ():
            if all(self.at(index + offset) == word for offset, word in enumerate(phrase)):
                yield index

    def before(self, index: int, skipped: frozenset[str]) -> int:
        """Return the last place before `index` whose word is not one of `skipped`."""
        index -= 1
        while index >= 0 and self.at(index) in skipped:
            index -= 1
        return index

    def clause_end(self, index: int) -> int:
        place = bisect_left(self._stops, index)
        return self._stops[place] if place < len(self._stops) else len(self.tokens)

    def line(self, index: int) -> int:
        return bisect_left(self._places.get("\n", []), index)

    def is_tight(self, index: int) -> bool:
        """Return whether there is no space on either side."""
        around = self.tokens[max(0, index - 1) : index + 2]
        return len(around) == 3 and around[0].end == around[1].start and around[1].end == around[2].start

    def shown(self, start: int, end: int) -> str:
        last = min(end, len(self.tokens)) - 1
        return self.text[self.tokens[start].start : self.tokens[last].end] if start <= last else ""

    def unread(self) -> list[str]:
        """Return the words and numbers that no rule took, without filler words."""
        left = (token for index, token in enumerate(self.tokens) if self.is_free(index) and not token.is_filler)
        return [token.shown for token in left if token.is_word or token.number is not None]


def split(text: str) -> Tokens:
    plain = _SUPERSCRIPT.sub(lambda match: "^" + match[1].translate(_PLAIN_DIGITS), text[:LONGEST])
    plain = unicodedata.normalize("NFKC", re.sub(r"…|\.{3,}", " ⋯ ", plain)).translate(_PLAIN_SIGNS)
    plain = re.sub(r"(?<=\d)\s*\.\.\s*(?=[\d.])", " to ", plain)  # 0.1..0.5
    plain = _TIMES_TEN.sub(r"\1e\2", plain)
    tokens = [_token(match) for match in _TOKEN.finditer(plain)]
    spans = [match.span() for match in _DOUBTFUL.finditer(plain)]
    doubtful = {i for i, token in enumerate(tokens) if any(low <= token.start < high for low, high in spans)}
    return Tokens(plain, tokens, len(text) > LONGEST, doubtful if spans else set())


def _token(match: re.Match[str]) -> Token:
    shown = match.group()
    number: float | int | None = _NUMBER_WORDS.get(shown.lower())
    if match.lastgroup == "power":
        base, _, exponent = shown.replace("**", "^").partition("^")
        number = _tidy(float(base) ** int(exponent)) if int(exponent) < 64 else None
    elif match.lastgroup == "number":
        number = number_of(shown)
    return Token(shown.lower(), shown, number, match.start(), match.end())


def number_of(text: str) -> float | int | None:
    """Return the number that a text such as `1e-3`, `10%` or `2k` means; None if a float cannot hold it."""
    plain = text.rstrip("kK%")
    if len(plain) > 40:
        return None
    value = float(plain) * (1_000 if text[-1] in "kK" else 1) / (100 if text.endswith("%") else 1)
    if not math.isfinite(value) or (value == 0 and re.search(r"[1-9]", plain.lower().partition("e")[0])):
        return None
    whole = re.fullmatch(r"[-+]?\d+", plain) is not None and not text.endswith("%")
    return int(value) if whole and abs(value) < 1e15 else _tidy(value)


def _tidy(value: float) -> float:
    return float(f"{value:.12g}")
