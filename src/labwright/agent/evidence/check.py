"""Check every number of an answer against the evidence it cites, and mark those without a source or with another value.

Not checked: numbers spelled out in words, and claims without any number, id or comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, islice
from typing import Any

from labwright.agent.evidence.comparisons import RankedList, agrees, comparing, contradicted, ranked_lists
from labwright.agent.evidence.evidence import Evidence, Reading
from labwright.agent.evidence.numbers import CITATION, ID, Written, is_shown, moments, numbers
from labwright.agent.evidence.subjects import Named, Subjects


class MarkKind(StrEnum):
    NO_SOURCE = "no_source"
    MISMATCH = "mismatch"
    UNKNOWN_EVIDENCE = "unknown_evidence"
    OTHER_SUBJECT = "other_subject"
    NO_COMPARISON = "no_comparison"
    WRONG_ORDER = "wrong_order"
    UNKNOWN_ID = "unknown_id"
    SOURCE_CHANGED = "source_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    start: int
    end: int
    text: str
    fault: MarkKind
    detail: str

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """What an answer is checked against."""

    evidence: Mapping[str, Evidence]
    look_again: Callable[[Evidence], Reading | None]  # None if the source no longer exists
    exists: Callable[[str], bool]  # whether something has this id
    named: Named = lambda _names: {}
    settings: Mapping[str, frozenset[float]] = field(default_factory=dict)  # parameters and their chosen values
    said: tuple[str, ...] = ()  # by the user
    done: frozenset[int] = frozenset()  # how often something was done, per turn and in total
    quotes: tuple[str, ...] = ()  # the user's messages, commands and results
    refusals: tuple[str, ...] = ()  # messages of tools that refused


_MOST_MARKS = 500
_LONGEST_SENTENCE = 4000  # characters
_LONGEST_NAME = 200  # of a setting's name
# A code block belongs to the text with a colon before it.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\d\s])|(?<![:\n])\n+|(?<=:)\n+(?![\n`])")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_ARGUMENT = re.compile(r"\s'([^'\s]+\s[^'\n]+)'(?=[\s`])")  # with several words
_SETTING = re.compile(r"(?:--)?([A-Za-z_][\w.-]*)\s*(?:=|:|\bof\b|\bto\b|\s)\s*$")
# Proposals and repetitions claim nothing. A statement about a run or a metric does.
_PROPOSES = re.compile(
    r"\b(?:try|trying|suggest|propose|recommend|let me|let's|i will|i'll|shall i|would you like|plan to"
    r"|start(?:ing)? with|(?:use|run) this|you (?:can|could) (?:use|run)|workflow improvement)\b",
    re.IGNORECASE,
)
_CLAIMS = re.compile(r"\b(?:reach(?:ed|es)|achiev(?:ed|es)|attained|scored|obtained|yielded)\b", re.IGNORECASE)
_I_DID = re.compile(
    r"\bI(?:['’]ve| have)? (?:(?:also|just|now) )?(?:started|launched|queued|submitted|created|stopped|saved)"
    r" (?:(?:all|the|these|another) )?$",
    re.IGNORECASE,
)
_ECHOES = re.compile(r"\b(?:you (?:asked|said|wanted|mentioned|gave)|as you)\b", re.IGNORECASE)


def check(text: str, known: CheckContext) -> list[Mark]:
    """Return the first marks; nobody reads more than these."""
    subjects = Subjects(text, known.evidence.values(), known.named)
    sentences = (_Sentence(words, start, known, subjects) for start, words in _sentences(text))
    of_sentences = (mark for sentence in sentences for mark in sentence.marks())
    of_lists = (mark for found in ranked_lists(text) for mark in _of_ranked_list(found, known, subjects))
    of_all = chain(_unknown_ids(text, known), _unknown_evidence(text, known), of_sentences, of_lists)
    passed_on = [span for refusal in known.refusals for span in _places(refusal, text)]
    marks = (mark for mark in of_all if not any(start <= mark.start < end for start, end in passed_on))
    return sorted(islice(marks, _MOST_MARKS), key=lambda mark: mark.start)


def _places(words: str, text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in re.finditer(re.escape(words), text))


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield sentences with their start. A table row and a list line are sentences. Very long ones are cut."""
    start = 0
    plain = _CODE.sub(lambda code: ("`" if code.group(0).startswith("```") else "x") * len(code.group(0)), text)
    ends = [(found.start(), found.end()) for found in _SENTENCE_END.finditer(plain)]
    for end, following in (*ends, (len(text), len(text))):
        while end - start > _LONGEST_SENTENCE:
            space = text.rfind(" ", start, start + _LONGEST_SENTENCE)
            cut = space + 1 if space > start else start + _LONGEST_SENTENCE
            yield start, text[start:cut]
            start = cut
        yield start, text[start:end]
        start = following


def _unknown_ids(text: str, known: CheckContext) -> Iterator[Mark]:
    for found in ID.finditer(text):
        if not known.exists(found.group(0)):
            yield _mark(found.start(), found.group(0), MarkKind.UNKNOWN_ID, "nothing has this id")


def _unknown_evidence(text: str, known: CheckContext) -> Iterator[Mark]:
    for found in CITATION.finditer(text):
        for name in re.findall(r"E\d+", found[1]):
            if name not in known.evidence:
                detail = f"no tool gave {name} in this conversation"
                yield _mark(found.start(), found.group(0), MarkKind.UNKNOWN_EVIDENCE, detail)


def _of_ranked_list(found: RankedList, known: CheckContext, subjects: Subjects) -> Iterator[Mark]:
    ranked = found.subjects(subjects)
    if len(ranked) < 2:
        return
    names = re.findall(r"E\d+", " ".join(m[1] for m in CITATION.finditer(found.words)))
    cited = [known.evidence[name] for name in dict.fromkeys(names) if name in known.evidence]
    if fault := _against_rankings(cited, lambda seen: found.agrees(ranked, seen)):
        yield _mark(found.start, found.said[0], *fault)


def _against_rankings(cited: Iterable[Evidence], agree: Callable[[Reading], bool]) -> tuple[MarkKind, str] | None:
    rankings = [one for one in cited if one.compares]
    if not rankings:
        return MarkKind.NO_COMPARISON, "no comparison is cited for it; compare first"
    if any(agree(one.seen) for one in rankings):
        return None
    return MarkKind.WRONG_ORDER, f"{rankings[0].id} says {' > '.join(rankings[0].seen.order[:5])}"


def _mark(start: int, text: str, fault: MarkKind, detail: str) -> Mark:
    return Mark(start=start, end=start + len(text), text=text, fault=fault, detail=detail)


class _Sentence:
    """One sentence: its numbers, the citation of each, and its subject."""

    def __init__(self, text: str, offset: int, known: CheckContext, subjects: Subjects) -> None:
        self._text = text
        self._offset = offset
        self._known = known
        self._subjects = subjects
        self._cites = [(m.start(), m.end(), re.findall(r"E\d+", m[1])) for m in CITATION.finditer(text)]
        self._code = [(m.start(), m.end(), m.group(0)) for m in _CODE.finditer(text)]

    def marks(self) -> Iterator[Mark]:
        for written in numbers(self._text):
            if mark := self._of_number(written):
                yield mark
        for found in moments(self._text):
            if not self._is_quoted(found.group(0)):
                yield self._mark(found.start(), found.group(0), MarkKind.NO_SOURCE, "no tool showed this time")
        yield from self._of_comparison()
        yield from self._of_movement()

    def _mark(self, start: int, text: str, fault: MarkKind, detail: str) -> Mark:
        return _mark(self._offset + start, text, fault, detail)

    def _of_number(self, written: Written) -> Mark | None:
        if self._is_setting(written) or self._is_in_quoted_code(written) or self._is_own_doing(written):
            return None
        if self._claims_nothing(written):
            return None
        names, clause = self._citation_of(written)
        cited = [self._known.evidence[name] for name in names if name in self._known.evidence]
        if not names:
            return self._mark(written.start, written.text, MarkKind.NO_SOURCE, "no evidence is cited for it")
        if not cited:
            return None  # unknown evidence is marked at the citation
        return self._against(written, clause, cited)

    def _against(self, written: Written, clause: str, cited: list[Evidence]) -> Mark | None:
        fitting = [one for one in cited if is_shown(written, clause, one.seen)]
        if not fitting:
            shown = "; ".join(f"{one.id} shows {_shown(one.seen)}" for one in cited)
            return self._mark(written.start, written.text, MarkKind.MISMATCH, shown[:300])
        strangers = [self._is_about_another(clause, one) for one in fitting]
        if all(strangers):
            return self._mark(written.start, written.text, MarkKind.OTHER_SUBJECT, strangers[0])
        return self._changed(written, clause, fitting)

    def _changed(self, written: Written, clause: str, fitting: list[Evidence]) -> Mark | None:
        """Mark the number if an ended source no longer shows it. A running source may have changed."""
        for one in fitting:
            seen = self._known.look_again(one) if one.seen.settled else one.seen
            if seen is not None and is_shown(written, clause, seen):
                return None
        detail = f"{fitting[0].id} no longer shows it"
        return self._mark(written.start, written.text, MarkKind.SOURCE_CHANGED, detail)

    def _citation_of(self, written: Written) -> tuple[list[str], str]:
        """Return the next citation after the number, or the last before it, and the text between two citations."""
        for start, _, names in self._cites:
            if start >= written.start:
                before = max((end for _, end, _ in self._cites if end <= start), default=0)
                together = [name for first, _, more in self._cites if self._adjoins(start, first) for name in more]
                return together or names, self._text[before:start]
        if self._cites:
            return self._cites[-1][2], self._text[self._cites[-1][1] :]
        return [], self._text

    def _adjoins(self, first: int, other: int) -> bool:
        """Return whether two citations form one: `[E1] [E2]` or `[E1][E2]`."""
        return other >= first and not CITATION.sub("", self._text[first:other]).strip(" ,;")

    def _is_about_another(self, clause: str, one: Evidence) -> str:
        """Return why the evidence is not about what the clause names, or an empty text."""
        sweeps = {found for found in ID.findall(clause) if found.startswith("sweep-")}
        named = sweeps.union(*self._subjects.of(clause))
        if named and one.seen.about and not named & set(one.seen.about):
            return f"{one.id} is about {one.seen.about[0]}, not {', '.join(sorted(named))}"
        spoken = self._metrics_in(clause)
        if one.seen.key and spoken and one.seen.key.lower() not in spoken:
            return f"{one.id} is about {one.seen.key}, not {', '.join(sorted(spoken))}"
        return ""

    def _is_setting(self, written: Written) -> bool:
        """Return whether the number is a chosen value, as in `lr=0.01` or `--lr 0.01`, and not a measured one."""
        before = self._text[max(0, written.start - _LONGEST_NAME) : written.start]
        found = _SETTING.search(before.replace("`", ""))
        chosen = self._known.settings.get(found[1].lower()) if found else None
        return chosen is not None and written.value in chosen

    def _is_own_doing(self, written: Written) -> bool:
        """Return whether the conversation's log is the evidence, as in `I started 3 runs`."""
        return written.value in self._known.done and _I_DID.search(self._text[: written.start]) is not None

    def _claims_nothing(self, written: Written) -> bool:
        if self._cites or ID.search(self._text) or self._metrics_in(self._text):
            return False
        if _ECHOES.search(self._text):
            return any(found.value == written.value for text in self._known.said for found in numbers(text))
        return _PROPOSES.search(self._text) is not None and not _CLAIMS.search(self._text)

    def _metrics_in(self, words: str) -> set[str]:
        """Return the metrics that the text names and that have evidence."""
        keys = {one.seen.key.lower() for one in self._known.evidence.values() if one.seen.key}
        return {key for key in keys if re.search(rf"(?<![\w/]){re.escape(key)}(?![\w/])", words.lower())}

    def _is_in_quoted_code(self, written: Written) -> bool:
        return any(
            self._is_quoted(code.strip("`").strip()) or self._are_own_words(code, written.start - start)
            for start, end, code in self._code
            if start <= written.start < end
        )

    def _are_own_words(self, code: str, place: int) -> bool:
        """Return whether an argument repeats the user's text: `labwright plan new 'lr 0.1 or 0.3'`."""
        arguments = (found for found in _ARGUMENT.finditer(code) if found.start() < place < found.end())
        return any(found[1] in text for found in arguments for text in self._known.said)

    def _is_quoted(self, words: str) -> bool:
        texts = [text for one in self._known.evidence.values() for text in one.seen.texts]
        return any(words in text for text in (*self._known.quotes, *texts))

    def _of_comparison(self) -> Iterator[Mark]:
        found = comparing(self._text, self._subjects)
        cited = self._cited()
        if not found or not (cited or self._subjects.of(self._text)):
            return
        if fault := _against_rankings(cited, lambda seen: agrees(self._text, self._subjects, seen)):
            yield self._mark(*found, *fault)

    def _of_movement(self) -> Iterator[Mark]:
        for start, words, detail in contradicted(self._text, self._cited()):
            yield self._mark(start, words, MarkKind.WRONG_ORDER, detail)

    def _cited(self) -> list[Evidence]:
        names = dict.fromkeys(name for _, _, names in self._cites for name in names)
        return [self._known.evidence[name] for name in names if name in self._known.evidence]


def _shown(seen: Reading) -> str:
    values = [f"{name} {value:g}" for name, value in list(seen.values.items())[:8]]
    return ", ".join(values) if values else "text without that number" if seen.texts else "no number"


def evidence_in(pieces: Iterable[Mapping[str, Any]]) -> dict[str, Evidence]:
    return {data["id"]: Evidence.from_dict(dict(data)) for data in pieces}
