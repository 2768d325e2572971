"""Which runs a text is about: by id, or by name.

A name of letters only, such as `baseline`, may be an ordinary word. It counts in quotes, after "run", and where two
such names are compared or one is called the best, but not in questions and conditions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, pairwise

from labwright.agent.evidence.evidence import Evidence
from labwright.agent.evidence.numbers import ID

Ids = frozenset[str]
_BETWEEN = (
    r"\s(?:(?:is|was|does|did|performs?|performed)\s)?(?:(?:much|far|clearly|slightly|significantly|still|also)\s)?"
    r"(?:better than|worse than|beats?|outperforms?|outperformed|outranks?|surpass(?:es|ed)|ahead of|behind"
    r"|superior to|inferior to|(?:has|had|reached|got)\s(?:a\s|the\s)?(?:higher|lower|better|worse)\s[\w./-]+\sthan)"
    r"\s(?:the\s)?"
)
_BEST_IS = r"\b(?:best|worst)(?:\s(?:run|one))?\s(?:is|was)\s(?:the\s)?"
_IS_BEST = r"\s(?:is|was)\sthe\s(?:best|worst)(?=\s(?:run|one|of|by)\b|\s?[\[.,;:!]|$)"


class PlainNames:
    def __init__(self, ids: Mapping[str, Ids]) -> None:
        found: dict[str, Ids] = defaultdict(frozenset)
        for name in filter(str.isalpha, ids):
            found[name.lower()] |= ids[name]
        self._ids = dict(found)
        self._spoken = _compared("|".join(sorted(found, key=len, reverse=True))) if found else None

    def placed_in(self, words: str) -> Iterator[tuple[int, int, Ids]]:
        if self._spoken is None or words.rstrip().endswith("?"):
            return
        for match in self._spoken.finditer(words):
            for group, name in match.groupdict().items():
                if name:
                    yield (*match.span(group), self._ids[name.lower()])


def _compared(names: str) -> re.Pattern[str]:
    before, after = r"(?<![\w=.`\"'-])(?<!\bif\s)(?<!\bwhether\s)", r"(?![\w=`\"'-]|\.\d)"
    pair = rf"{before}(?P<first>{names}){_BETWEEN}(?P<second>{names}){after}"
    best = rf"{_BEST_IS}(?P<best>{names}){after}"
    return re.compile(rf"{pair}|{best}|{before}(?P<winner>{names}){_IS_BEST}", re.IGNORECASE)


Named = Callable[[Iterable[str]], Mapping[str, Iterable[str]]]  # names of runs, with their ids
Subject = frozenset[str]  # ids of runs; several if they share a name
_RUN = "run-"
_SHOWN_AS_NAME = re.compile(r"`([^`\n]{1,200})`|\b[Rr]uns?\s[\"'“*]{0,2}([\w.=-]{1,100})")
_MOST_NAMES = 500


class Subjects:
    def __init__(self, text: str, evidence: Iterable[Evidence], named: Named) -> None:
        self._ids = _ids_by_name(evidence)
        self._plain = PlainNames(self._ids)
        shown = (m[1] or m[2] for m in islice(_SHOWN_AS_NAME.finditer(text), _MOST_NAMES))
        if others := {*shown} - self._ids.keys():
            self._ids |= {name: frozenset(ids) for name, ids in named(others).items()}
        longest_first = sorted(self._ids, key=len, reverse=True)
        self._named = re.compile("|".join(map(_spoken, longest_first))) if longest_first else None

    def of(self, words: str) -> list[Subject]:
        """Return the subjects in order. `run-… (baseline)` is one."""
        return [subject for _, _, subject in self.placed_in(words)]

    def placed_in(self, words: str) -> list[tuple[int, int, Subject]]:
        """Return each subject with its start and end."""
        by_id = [(*m.span(), frozenset({m[0]})) for m in ID.finditer(words) if m[0].startswith(_RUN)]
        by_name = [(*m.span(), self._ids[m[m.lastindex or 0]]) for m in self._names_in(words)]
        found: list[tuple[int, int, Subject]] = []
        for start, end, subject in sorted([*by_id, *by_name, *self._plain.placed_in(words)], key=lambda one: one[0]):
            if found and found[-1][2] & subject:
                found[-1] = (found[-1][0], end, found[-1][2] & subject)
            else:
                found.append((start, end, subject))
        return found

    def _names_in(self, words: str) -> Iterable[re.Match[str]]:
        return self._named.finditer(words) if self._named else ()


def _ids_by_name(evidence: Iterable[Evidence]) -> dict[str, Subject]:
    found: dict[str, set[str]] = defaultdict(set)
    for one in evidence:
        for run_id, name in pairwise(one.seen.about):
            if ID.fullmatch(run_id) and run_id.startswith(_RUN) and name and not ID.fullmatch(name):
                found[name].add(run_id)
    return {name: frozenset(ids) for name, ids in found.items()}


def _spoken(name: str) -> str:
    word = f"({re.escape(name)})(?![\\w=-]|\\.\\d)"
    return rf"(?:[`\"'“*]|\b[Rr]uns?\s){word}" if name.isalpha() else rf"(?<![\w=.-]){word}"
