"""Words that a value moved from one number to another: whether it did, and that way round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from labwright.agent.evidence.evidence import Evidence, Seen
from labwright.agent.evidence.matching import is_shown
from labwright.agent.evidence.numbers import Written, numbers

_ROSE = r"ris(?:es?|en|ing)|rose|gr(?:ew|ows?|own|owing)|increas(?:e[sd]?|ing)|climb(?:ed|s|ing)?|jump(?:ed|s)|went up"
_FELL = r"f(?:ell|alls?|allen|alling)|drop(?:ped|s|ping)?|de(?:creas|clin)(?:e[sd]?|ing)|shrank|sank|went down"
_MOVED = re.compile(rf"\b(?:(?P<up>{_ROSE})|(?:{_FELL}))\b", re.IGNORECASE)
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
        if is_rise is not bool(moved["up"]):
            yield moved.start(), words[moved.start() : then.end], f"{first.text} to {then.text} is the other way round"
        elif cited and all(_ends_where_it_is_said_to_begin(pair, one.seen) for one in cited):
            yield moved.start(), words[moved.start() : then.end], f"{cited[0].id} ends with {first.text}"


def _moved_before(words: str, end: int) -> re.Match[str] | None:
    """The last word of it, as in "the drop rate rose from"; none where it is denied."""
    start = max(0, end - _FARTHEST)
    if _DENIED.search(words, start, end):
        return None
    return max(_MOVED.finditer(words, start, end), key=lambda found: found.start(), default=None)


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
