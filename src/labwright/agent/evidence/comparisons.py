"""Claims that compare: that a value moved from one number to another, and that one run is better than another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from labwright.agent.evidence.evidence import Evidence, Reading
from labwright.agent.evidence.numbers import CITATION, Written, blanked, is_shown, numbers
from labwright.agent.evidence.subjects import Subject, Subjects
from labwright.domain.metrics.direction import MAXIMIZE, MINIMIZE, direction_of

_ROSE = r"ris(?:es?|en|ing)|rose|gr(?:ew|ows?|own|owing)|increas(?:e[sd]?|ing)|climb(?:ed|s|ing)?|jump(?:ed|s)|went up"
_FELL = r"f(?:ell|alls?|allen|alling)|drop(?:ped|s|ping)?|de(?:creas|clin)(?:e[sd]?|ing)|shrank|sank|went down"
_IMPROVED = r"improv(?:e[sd]?|ing|ements?)"
_WORSENED = r"worsen(?:ed|s|ing)?|degrad(?:e[sd]?|ing)|deteriorat(?:e[sd]?|ing)"
_MOVED = re.compile(
    rf"\b(?:(?P<up>{_ROSE})|(?P<down>{_FELL})|(?P<better>{_IMPROVED})|(?P<worse>{_WORSENED}))\b", re.IGNORECASE
)
# What may be between the verb and "from". Otherwise something else moved, as in "it rose as lr went from".
_HOW = re.compile(
    r"(?:\s+(?:\w+ly|again|back|further|even|overall|a (?:bit|little)|(?:in|of)\s+(?:the\s+)?\S+|by\s+\S+))*\s+",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:no|not|never|without|instead of)\b|n['’]t\b", re.IGNORECASE)
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
_ABOUT = re.compile(r"[\s*_`(]*(?:(?:about|around|roughly|nearly|almost|some)\s+)?", re.IGNORECASE)
_TO = re.compile(r"\bto\b", re.IGNORECASE)
_FARTHEST = 60  # characters between the verb and its numbers, and between the numbers


def contradicted(words: str, cited: Sequence[Evidence]) -> Iterator[tuple[int, str, str]]:
    """Find claims of change that the numbers or their sources contradict. Yield the place, the text and the reason."""
    written = list(numbers(words)) if _MOVED.search(words) else []
    for found in _FROM.finditer(words) if written else ():
        moved, pair = _moved_before(words, found.start()), _from_and_to(words, found.end(), written)
        if moved is None or pair is None:
            continue
        first, then = pair
        is_rise = then.value * then.scale > first.value * first.scale
        ways = {direction_of(one.seen.key) for one in cited if any(is_shown(number, "", one.seen) for number in pair)}
        if is_rise is not _claims_rise(moved, ways, is_rise):
            yield moved.start(), words[moved.start() : then.end], f"{first.text} to {then.text} is the other way round"
        elif cited and all(_ends_at_the_first(pair, one.seen) for one in cited):
            yield moved.start(), words[moved.start() : then.end], f"{cited[0].id} ends with {first.text}"


def _moved_before(words: str, end: int) -> re.Match[str] | None:
    """Return the verb before "from", or None if the change is denied."""
    start = max(0, end - _FARTHEST)
    if _DENIED.search(words, start, end):
        return None
    moved = max(_MOVED.finditer(words, start, end), key=lambda found: found.start(), default=None)
    return moved if moved and _HOW.fullmatch(words, moved.end(), end) else None


def _claims_rise(moved: re.Match[str], ways: set[str | None], is_rise: bool) -> bool:
    """Return whether the text claims a rise. If the better direction is unknown, both are accepted."""
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


def _ends_at_the_first(pair: tuple[Written, Written], seen: Reading) -> bool:
    """Return whether the source's last value is the first number and not the second."""
    end = Reading(values={"last": seen.values["last"]}) if "last" in seen.values else Reading()
    first, then = pair
    return is_shown(first, "", end) and not is_shown(then, "", end)


_COMPARES = re.compile(
    r"\b(?:better|worse|higher|lower|faster|slower|larger|smaller)\b[^.]*\bthan\b"
    r"|\b(?:best|worst|winner|wins|won|beats?|outperforms?|outranks?|surpass(?:es|ed)?|ahead of|superior to|inferior to"
    r"|ranks|ranked|ranking)\b",
    re.IGNORECASE,
)
_BEST = re.compile(r"\b(?:best|winner|wins|won|leads|ranks first|ranked first)\b", re.IGNORECASE)
_WORST = re.compile(r"\b(?:worst|ranks last|ranked last)\b", re.IGNORECASE)
_AHEAD = re.compile(
    r"\b(?:better than|beats?|outperforms?|outranks?|surpass(?:es|ed)?|ahead of|superior to|wins (?:over|against))\b",
    re.IGNORECASE,
)
_BEHIND = re.compile(r"\b(?:worse than|behind|inferior to)\b", re.IGNORECASE)
_MORE = re.compile(r"\b(?:higher|larger|greater)\b[^.]*\bthan\b", re.IGNORECASE)
_LESS = re.compile(r"\b(?:lower|smaller)\b[^.]*\bthan\b", re.IGNORECASE)
_RANKS = re.compile(r"\b(?:ranking|ranked)\b", re.IGNORECASE)
# `A` > `B`, with only numbers and brackets between them; not an arrow.
_SIGN = re.compile(r"(?:[^A-Za-z<>]|\d[eE][+-]?\d)*(?<![-=])([<>])(?![-=])(?:[^A-Za-z<>]|\d[eE][+-]?\d)*")
_IN_BRACKETS = re.compile(r"\([^()\n]*\)")
_RANKS_A_LIST = re.compile(
    r"\b(?:ranking|ranked|leaderboard|top \d+ (?:runs?|by)|best (?:runs? )?first|best to (?:the )?worst)\b"
    r"|\b(?P<upwards>worst (?:runs? )?first|worst to (?:the )?best)\b|^\s*\|\s*(?P<column>rank|place|#)\s*\|",
    re.IGNORECASE,
)
_FIRST_PLACE = re.compile(
    r"\s*\|[\s*]*1[\s*]*\|"
)  # otherwise the column may mean something else, such as the rank of a LoRA
_ITEM = re.compile(r"(?P<indent>[^\S\n]*)(?:[-*•]\s|\d+[.)]\s|\|)")


def comparing(words: str, subjects: Subjects) -> tuple[int, str] | None:
    """Return the place and the text of the first comparison."""
    if found := _COMPARES.search(words):
        return found.start(), found[0]
    return next(((found.start, words[found.start : found.end]) for found in _signs(words, subjects)), None)


def agrees(words: str, subjects: Subjects, seen: Reading) -> bool:
    """Return whether a ranking agrees with the text. An unclear text agrees."""
    if said := _said(words, seen):
        found, is_ahead = said
        before = [subject for _, end, subject in subjects.placed_in(words) if end <= found.start()]
        after = [subject for start, _, subject in subjects.placed_in(words) if start >= found.end()]
        pair = _places([*before[-1:], *after[:1]], seen.order)
        return len(pair) < 2 or (pair[0] < pair[1]) is is_ahead
    if signs := list(_signs(words, subjects)):
        ahead = "<" if seen.goal == "min" and _names_key(words, seen) and not _RANKS.search(words) else ">"
        return all(_is_in_order(found.pair if found.sign == ahead else found.pair[::-1], seen) for found in signs)
    placed = _places(subjects.of(words), seen.order)
    if len(placed) > 1 and _RANKS.search(words) and not _WORST.search(words):
        return placed == sorted(placed)
    if _BEST.search(words) and len(subjects.of(words)) == 1:
        return placed == [0] if placed else len(seen.order) > 1
    if _WORST.search(words) and len(placed) == 1 and len(seen.order) > 1:
        return placed[0] == len(seen.order) - 1
    return True


class _Sign(NamedTuple):
    """Two runs with > or < between them."""

    start: int
    end: int
    sign: str
    pair: tuple[Subject, Subject]


def _signs(words: str, subjects: Subjects) -> Iterator[_Sign]:
    for (begin, end, one), (start, finish, other) in pairwise(subjects.placed_in(words)):
        if found := _SIGN.fullmatch(blanked(words[end:start], CITATION, _IN_BRACKETS)):
            yield _Sign(begin, finish, found[1], (one, other))


def _is_in_order(subjects: Sequence[Subject], seen: Reading) -> bool:
    """Return whether the subjects are in order, best first."""
    placed = _places(subjects, seen.order)
    return placed == sorted(placed)


@dataclass(slots=True)
class RankedList:
    """A list or a table under a line that says that it is a ranking."""

    start: int
    said: re.Match[str]  # the text that says so
    words: str  # the whole list
    lines: list[str] = field(default_factory=list)  # without nested lines

    def subjects(self, subjects: Subjects) -> list[Subject]:
        if self.said["column"] and not any(map(_FIRST_PLACE.match, self.lines)):
            return []
        return [subject for line in self.lines for subject in subjects.of(line)[:1]]

    def agrees(self, found: Sequence[Subject], seen: Reading) -> bool:
        return _is_in_order(found[::-1] if self.said["upwards"] else found, seen)


def ranked_lists(text: str) -> Iterator[RankedList]:
    found: RankedList | None = None
    start, indent = 0, ""
    for line in text.splitlines(keepends=True):
        item = _ITEM.match(line)
        if found and (item or not line.strip()):
            found.words += line
            indent = item["indent"] if item and not found.lines else indent
            found.lines += [line] if item and len(item["indent"]) <= len(indent) else []
        else:
            if found:
                yield found
            said = _RANKS_A_LIST.search(line)
            found = RankedList(start + said.start(), said, line) if said else None
        start += len(line)
    if found:
        yield found


def _names_key(words: str, seen: Reading) -> bool:
    return bool(seen.key) and seen.key.lower() in words.lower()


def _places(subjects: Sequence[Subject], order: Sequence[str]) -> list[int]:
    """Return the places in the order. Runs that share a name are left out: it is unclear which one is meant."""
    found = [[place for place, run_id in enumerate(order) if run_id in subject] for subject in subjects]
    return list(dict.fromkeys(places[0] for places in found if len(places) == 1))


def _said(words: str, seen: Reading) -> tuple[re.Match[str], bool] | None:
    """Return the comparison of two runs, and whether the first is said to be better."""
    ways = [(_AHEAD, True), (_BEHIND, False)]
    if seen.goal and _names_key(words, seen):
        ways += [(_MORE, seen.goal == "max"), (_LESS, seen.goal == "min")]
    return next(((found, is_ahead) for way, is_ahead in ways if (found := way.search(words))), None)
