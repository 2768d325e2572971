"""Words that a value moved from one number to another: whether it did, and that way round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from labwright.agent.evidence.evidence import Evidence, Seen
from labwright.agent.evidence.matching import is_shown
from labwright.agent.evidence.numbers import Written, numbers
from labwright.domain.metrics.direction import MAXIMIZE, MINIMIZE, direction_of

_ROSE = r"ris(?:es?|en|ing)|rose|gr(?:ew|ows?|own|owing)|increas(?:e[sd]?|ing)|climb(?:ed|s|ing)?|jump(?:ed|s)|went up"
_FELL = r"f(?:ell|alls?|allen|alling)|drop(?:ped|s|ping)?|de(?:creas|clin)(?:e[sd]?|ing)|shrank|sank|went down"
_IMPROVED = r"improv(?:e[sd]?|ing|ements?)"
_WORSENED = r"worsen(?:ed|s|ing)?|degrad(?:e[sd]?|ing)|deteriorat(?:e[sd]?|ing)"
_MOVED = re.compile(
    rf"\b(?:(?P<up>{_ROSE})|(?P<down>{_FELL})|(?P<better>{_IMPROVED})|(?P<worse>{_WORSENED}))\b", re.IGNORECASE
)
# What may stand between the word and "from": else it is another thing that moved, as in "it rose as lr went from".
_HOW = re.compile(
    r"(?:\s+(?:\w+ly|again|back|further|even|overall|a (?:bit|little)|(?:in|of)\s+(?:the\s+)?\S+|by\s+\S+))*\s+",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:no|not|never|without|instead of)\b|n['’]t\b", re.IGNORECASE)
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
_ABOUT = re.compile(r"[\s*_`(]*(?:(?:about|around|roughly|nearly|almost|some)\s+)?", re.IGNORECASE)
_TO = re.compile(r"\bto\b", re.IGNORECASE)
_FARTHEST = 60  # characters from the word to its numbers, and from one to the other


def contradicted(words: str, cited: Sequence[Evidence]) -> Iterator[tuple[int, str, str]]:
    """Where a movement is told that the numbers, or what they were taken from, gainsay; the words; and why."""
    written = list(numbers(words)) if _MOVED.search(words) else []
    for found in _FROM.finditer(words) if written else ():
        moved, pair = _moved_before(words, found.start()), _from_and_to(words, found.end(), written)
        if moved is None or pair is None:
            continue
        first, then = pair
        is_rise = then.value * then.scale > first.value * first.scale
        ways = {direction_of(one.seen.key) for one in cited if any(is_shown(number, "", one.seen) for number in pair)}
        if is_rise is not _is_said_to_rise(moved, ways, is_rise):
            yield moved.start(), words[moved.start() : then.end], f"{first.text} to {then.text} is the other way round"
        elif cited and all(_ends_where_it_is_said_to_begin(pair, one.seen) for one in cited):
            yield moved.start(), words[moved.start() : then.end], f"{cited[0].id} ends with {first.text}"


def _moved_before(words: str, end: int) -> re.Match[str] | None:
    """None where it is denied."""
    start = max(0, end - _FARTHEST)
    if _DENIED.search(words, start, end):
        return None
    moved = max(_MOVED.finditer(words, start, end), key=lambda found: found.start(), default=None)
    return moved if moved and _HOW.fullmatch(words, moved.end(), end) else None


def _is_said_to_rise(moved: re.Match[str], ways: set[str | None], is_rise: bool) -> bool:
    """Where nobody knows whether more or less is better, both are fine."""
    if moved["up"] or moved["down"]:
        return bool(moved["up"])
    if ways not in ({MAXIMIZE}, {MINIMIZE}):
        return is_rise
    return (ways == {MAXIMIZE}) is bool(moved["better"])


def _from_and_to(words: str, start: int, written: Sequence[Written]) -> tuple[Written, Written] | None:
    first = _at(written, _after(words, start))
    to = _TO.search(words, first.end, first.end + _FARTHEST) if first else None
    then = _at(written, _after(words, to.end())) if to else None
    return (first, then) if first and then else None


def _after(words: str, start: int) -> int:
    found = _ABOUT.match(words, start)
    return found.end() if found else start


def _at(written: Sequence[Written], start: int) -> Written | None:
    return next((one for one in written if one.start == start), None)


def _ends_where_it_is_said_to_begin(pair: tuple[Written, Written], seen: Seen) -> bool:
    """Only a series has a last value."""
    end = Seen(values={"last": seen.values["last"]}) if "last" in seen.values else Seen()
    first, then = pair
    return is_shown(first, "", end) and not is_shown(then, "", end)
