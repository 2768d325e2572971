"""Where a goal names the flags of the script."""

from __future__ import annotations

from dataclasses import dataclass

from labwright.planning.goals.synonyms import Phrase, phrases_of
from labwright.planning.goals.words import Words
from labwright.planning.scan import EntryPoint, Flag, Role


@dataclass(slots=True)
class Mention:
    flag: Flag
    start: int
    end: int


def read_mentions(words: Words, entry: EntryPoint) -> tuple[list[Mention], set[str]]:
    """In order; and the flags that only say whose parameter another one is."""
    return _with_their_owners(words, _mentions(words, phrases_of(entry)))


def _mentions(words: Words, phrases: list[Phrase]) -> list[Mention]:
    """Each place where a flag is named, by its longest name. Seeds have rules of their own."""
    found: dict[int, Mention] = {}
    covered: set[int] = set()
    for phrase in phrases:
        if phrase.flag.role is Role.SEED:
            continue
        for start in words.places(phrase.words):
            span = range(start, start + len(phrase.words))
            if covered & set(span) or not all(words.is_free(index) for index in span):
                continue
            if not divides(words, start) and not _is_folder(words, span.stop - 1):
                covered |= set(span)
                found[start] = Mention(phrase.flag, start, start + len(phrase.words))
    return [found[start] for start in sorted(found)]


def _with_their_owners(words: Words, mentions: list[Mention]) -> tuple[list[Mention], set[str]]:
    """`the lr of the optimizer from 0.1 to 1`: the values are the lr's, and the optimizer is no parameter here."""
    kept: list[Mention] = []
    owners: set[str] = set()
    for mention in mentions:
        place = mention.start - (words.at(mention.start - 1) in ("the", "our"))
        if kept and mention.flag.type == "str" and words.at(place - 1) == "of" and kept[-1].end == place - 1:
            kept[-1].end = mention.end
            owners.add(mention.flag.name)
        else:
            kept.append(mention)
    return kept, owners


def _is_folder(words: Words, index: int) -> bool:
    """`configs/base.yaml` is a file, and no mention of a flag `config`; `lr/dropout` is both of them."""
    while words.at(index + 1) == "/" and words.is_tight(index + 1):
        index += 2
        if "." in words.at(index):
            return True
    return False


def divides(words: Words, index: int) -> bool:
    """`in steps of 2` and `in 5 steps` divide a range; they are not the script's steps."""
    if words.at(index) not in ("steps", "step"):
        return False
    return words.at(index + 1) == "of" or (words.number(index - 1) is not None and words.at(index - 2) == "in")
