"""Names of runs that are ordinary words, such as `baseline`.

They count where the words put one before another or call one the best, as nothing else is meant there; not in
questions and conditions, and only of runs that there is evidence of.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

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
