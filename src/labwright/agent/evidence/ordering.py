"""Words that put one run before another, and whether a ranking says the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from labwright.agent.evidence.evidence import Seen
from labwright.agent.evidence.numbers import CITATION, blanked
from labwright.agent.evidence.subjects import Subject, Subjects

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
# `A` > `B`, with nothing but numbers and what stands in brackets between them; no arrow.
_SIGN = re.compile(r"(?:[^A-Za-z<>]|\d[eE][+-]?\d)*(?<![-=])([<>])(?![-=])(?:[^A-Za-z<>]|\d[eE][+-]?\d)*")
_IN_BRACKETS = re.compile(r"\([^()\n]*\)")
_RANKS_A_LIST = re.compile(
    r"\b(?:ranking|ranked|leaderboard|top \d+ (?:runs?|by)|best (?:runs? )?first|best to (?:the )?worst)\b"
    r"|\b(?P<upwards>worst (?:runs? )?first|worst to (?:the )?best)\b|^\s*\|\s*(?P<column>rank|place|#)\s*\|",
    re.IGNORECASE,
)
_FIRST_PLACE = re.compile(r"\s*\|[\s*]*1[\s*]*\|")  # else the column may tell of something else, as of a LoRA's rank
_ITEM = re.compile(r"(?P<indent>[^\S\n]*)(?:[-*•]\s|\d+[.)]\s|\|)")


def comparing(words: str, subjects: Subjects) -> tuple[int, str] | None:
    """The first words that compare, and where they stand."""
    if found := _COMPARES.search(words):
        return found.start(), found[0]
    return next(((found.start, words[found.start : found.end]) for found in _signs(words, subjects)), None)


def agrees(words: str, subjects: Subjects, seen: Seen) -> bool:
    """What cannot be told is not held against the words."""
    if said := _said(words, seen):
        found, is_ahead = said
        before = [subject for _, end, subject in subjects.placed_in(words) if end <= found.start()]
        after = [subject for start, _, subject in subjects.placed_in(words) if start >= found.end()]
        pair = _places([*before[-1:], *after[:1]], seen.order)
        return len(pair) < 2 or (pair[0] < pair[1]) is is_ahead
    if signs := list(_signs(words, subjects)):
        ahead = "<" if seen.goal == "min" and _names_key(words, seen) and not _RANKS.search(words) else ">"
        return all(_goes_down(found.pair if found.sign == ahead else found.pair[::-1], seen) for found in signs)
    placed = _places(subjects.of(words), seen.order)
    if len(placed) > 1 and _RANKS.search(words) and not _WORST.search(words):
        return placed == sorted(placed)
    if _BEST.search(words) and len(subjects.of(words)) == 1:
        return placed == [0] if placed else len(seen.order) > 1
    if _WORST.search(words) and len(placed) == 1 and len(seen.order) > 1:
        return placed[0] == len(seen.order) - 1
    return True


class _Sign(NamedTuple):
    """Two runs on either side of > or <."""

    start: int
    end: int
    sign: str
    pair: tuple[Subject, Subject]


def _signs(words: str, subjects: Subjects) -> Iterator[_Sign]:
    for (begin, end, one), (start, finish, other) in pairwise(subjects.placed_in(words)):
        if found := _SIGN.fullmatch(blanked(words[end:start], CITATION, _IN_BRACKETS)):
            yield _Sign(begin, finish, found[1], (one, other))


def _goes_down(subjects: Sequence[Subject], seen: Seen) -> bool:
    """From better to worse."""
    placed = _places(subjects, seen.order)
    return placed == sorted(placed)


@dataclass(slots=True)
class RankedList:
    """A list or a table under a line that says it goes by merit."""

    start: int
    said: re.Match[str]  # what says so
    words: str  # all of it
    lines: list[str] = field(default_factory=list)  # not those that stand further in

    def subjects(self, subjects: Subjects) -> list[Subject]:
        if self.said["column"] and not any(map(_FIRST_PLACE.match, self.lines)):
            return []
        return [subject for line in self.lines for subject in subjects.of(line)[:1]]

    def agrees(self, found: Sequence[Subject], seen: Seen) -> bool:
        return _goes_down(found[::-1] if self.said["upwards"] else found, seen)


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


def _names_key(words: str, seen: Seen) -> bool:
    return bool(seen.key) and seen.key.lower() in words.lower()


def _places(subjects: Sequence[Subject], order: Sequence[str]) -> list[int]:
    """Not of runs that share their name: which of them is meant, nobody knows."""
    found = [[place for place, run_id in enumerate(order) if run_id in subject] for subject in subjects]
    return list(dict.fromkeys(places[0] for places in found if len(places) == 1))


def _said(words: str, seen: Seen) -> tuple[re.Match[str], bool] | None:
    """Where two are compared, and whether the first is said to be ahead."""
    ways = [(_AHEAD, True), (_BEHIND, False)]
    if seen.goal and _names_key(words, seen):
        ways += [(_MORE, seen.goal == "max"), (_LESS, seen.goal == "min")]
    return next(((found, is_ahead) for way, is_ahead in ways if (found := way.search(words))), None)
