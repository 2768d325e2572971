"""Choices by their names, anywhere in a goal: `try adam and sgd`, `compare all optimizers`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labwright.planning.goals.denials import denied_choice
from labwright.planning.goals.facts import Variation
from labwright.planning.goals.filler import FILLER
from labwright.planning.goals.free_words import list_with, takes_any_word
from labwright.planning.goals.synonyms import choices_of, family_of
from labwright.planning.goals.varied import Given, Varied, keep
from labwright.planning.goals.words import VARYING, Words
from labwright.planning.scan import EntryPoint, Flag


def read_choices(words: Words, entry: EntryPoint, found: Varied) -> None:
    settled = {variation.flag for variation in found.variations} | set(found.fixed)
    for flag in entry.flags:
        if not flag.is_settable or flag.name in settled | found.left:
            continue
        denied = _denied_choices(words, flag, found)
        named = list(_named_choices(words, flag))
        distinct = tuple(dict.fromkeys(value for _index, value in named))
        if len(distinct) > 1:
            found.given[flag.name] = [Given(index, (value,)) for index, value in named]
            found.chosen.append(flag.name)
            for index, _value in named:
                words.take(index, index + 1)
            found.variations.append(Variation(flag=flag.name, values=distinct, words="named"))
        elif distinct and (denied or any(_is_meant(words, index) for index, _value in named)):
            for index, _value in named:
                words.take(index, index + 1)
            found.fixed[flag.name] = distinct[0]
        elif not named and len(flag.choices) > 1 and flag.name not in found.owners and _wants_all(words, flag):
            values = tuple(choice for choice in flag.choices if choice not in denied)
            note = "all that it takes" if not denied else "all that it takes but those that the goal excludes"
            found.variations.append(Variation(flag=flag.name, values=values, scale="all", note=note))


def _is_meant(words: Words, index: int) -> bool:
    """`on resnet50`, `the adam optimizer`. A choice that is called `mean` or `test` may be any word of the goal."""
    return words.at(index) not in FILLER or words.at(index - 1) in ("with", "using", "use", "only", "under")


def read_beside_own(words: Words, entry: EntryPoint, found: Varied) -> None:
    """`compare resnet18 and resnet50`, where the script has resnet18 and takes any name."""
    settled = {variation.flag for variation in found.variations} | set(found.fixed) | found.left
    for flag in entry.flags:
        if flag.name in settled or not takes_any_word(flag) or not isinstance(flag.default, str):
            continue
        if (listed := list_with(words, flag.default)) is not None:
            start, after = listed
            words.take(start, after.end)
            found.named_only = [named for named in found.named_only if named.name != flag.name]
            found.open = [(named, count) for named, count in found.open if named.name != flag.name]
            keep(flag, after.values, after.scale, words.shown(start, after.end), found)


def _denied_choices(words: Words, flag: Flag, found: Varied) -> list[Any]:
    denied = []
    for index, value in list(_named_choices(words, flag)):
        if (start := denied_choice(words, index)) is not None:
            words.take(start, index + 1)
            denied.append(value)
    if denied:
        found.denied[flag.name] = denied
    return denied


def _named_choices(words: Words, flag: Flag) -> Iterator[tuple[int, Any]]:
    known = {choice.lower(): choice for choice in choices_of(flag)}
    for index, token in enumerate(words.tokens):
        if token.is_word and token.text in known and words.is_free(index):
            yield index, known[token.text]


def _wants_all(words: Words, flag: Flag) -> bool:
    """`which optimizer is best`, `compare schedules`."""
    own = {words_ for words_ in (flag.name.lower(), family_of(flag.name)) for words_ in (words_, f"{words_}s")}
    for index, token in enumerate(words.tokens):
        near = {words.at(place) for place in range(max(0, index - 5), index)}
        if token.text in own and near & VARYING:
            return True
    return False
