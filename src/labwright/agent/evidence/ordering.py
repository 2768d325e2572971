"""Words that put one run before another, and whether a ranking says the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

from labwright.agent.evidence.evidence import Seen
from labwright.agent.evidence.subjects import Subject, Subjects

COMPARES = re.compile(
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


def agrees(words: str, subjects: Subjects, seen: Seen) -> bool:
    """What cannot be told is not held against the words."""
    if said := _said(words, seen):
        found, is_ahead = said
        pair = _places([*subjects.of(words[: found.start()])[-1:], *subjects.of(words[found.end() :])[:1]], seen.order)
        return len(pair) < 2 or (pair[0] < pair[1]) is is_ahead
    placed = _places(subjects.of(words), seen.order)
    if len(placed) > 1 and _RANKS.search(words) and not _WORST.search(words):
        return placed == sorted(placed)
    if _BEST.search(words) and len(subjects.of(words)) == 1:
        return placed == [0] if placed else len(seen.order) > 1
    if _WORST.search(words) and len(placed) == 1 and len(seen.order) > 1:
        return placed[0] == len(seen.order) - 1
    return True


def _places(subjects: Sequence[Subject], order: Sequence[str]) -> list[int]:
    """Not of runs that share their name: which of them is meant, nobody knows."""
    found = [[place for place, run_id in enumerate(order) if run_id in subject] for subject in subjects]
    return list(dict.fromkeys(places[0] for places in found if len(places) == 1))


def _said(words: str, seen: Seen) -> tuple[re.Match[str], bool] | None:
    """Where two are compared, and whether the first is said to be ahead."""
    ways = [(_AHEAD, True), (_BEHIND, False)]
    if seen.goal and seen.key and seen.key.lower() in words.lower():
        ways += [(_MORE, seen.goal == "max"), (_LESS, seen.goal == "min")]
    return next(((found, is_ahead) for way, is_ahead in ways if (found := way.search(words))), None)
