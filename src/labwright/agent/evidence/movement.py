"""Words that a value moved from one number to another: whether it did, and that way round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from labwright.agent.evidence.evidence import Evidence, Seen
from labwright.agent.evidence.matching import is_shown
from labwright.agent.evidence.numbers import Written, numbers

_ROSE = r"ris(?:es?|en|ing)|rose|gr(?:ew|ows?|own|owing)|increas(?:e[sd]?|ing)|climb(?:ed|s|ing)?|jump(?:ed|s)|went up"
_FELL = r"f(?:ell|alls?|allen|alling)|drop(?:ped|s|ping)?|de(?:creas|clin)(?:e[sd]?|ing)|shrank|sank|went down"
_MOVED = re.compile(rf"\b(?:(?P<up>{_ROSE})|(?:{_FELL}))\b[^.;\n]{{0,40}}?\bfrom\b", re.IGNORECASE)
_ABOUT = re.compile(r"[\s*_`(]*(?:(?:about|around|roughly|nearly|almost|some)\s+)?", re.IGNORECASE)
_TO = re.compile(r"\bto\b", re.IGNORECASE)
_FARTHEST = 60  # characters from one number to the other


def contradicted(words: str, cited: Sequence[Evidence]) -> Iterator[tuple[int, str, str]]:
    """Where a movement is told that the numbers, or what they were taken from, gainsay; the words; and why."""
    written = list(numbers(words)) if _MOVED.search(words) else []
    for found in _MOVED.finditer(words):
        if not (pair := _from_and_to(words, found.end(), written)):
            continue
        first, then = pair
        is_rise = then.value * then.scale > first.value * first.scale
        if is_rise is not bool(found["up"]):
            yield found.start(), words[found.start() : then.end], f"{first.text} to {then.text} is the other way round"
        elif cited and all(_ends_where_it_is_said_to_begin(pair, one.seen) for one in cited):
            yield found.start(), words[found.start() : then.end], f"{cited[0].id} ends with {first.text}"


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
