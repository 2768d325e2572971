"""Words as values of a flag that takes any: `model_name resnet18 vs resnet50`, `compare resnet18 and resnet50`."""

from __future__ import annotations

from labwright.planning.goals.filler import FILLER
from labwright.planning.goals.synonyms import choices_of
from labwright.planning.goals.values import Found
from labwright.planning.goals.words import Words
from labwright.planning.scan import Flag

_LEADING = {"in", "of", "to", "among", "is", "are", "values", "{", "[", "(", "as"}
_TELLING = {"=", ":"}  # behind one of these, a single word is a value, too
_LAST = {"and", "or", "vs", "versus", "against"}  # behind one of these, a comma ends the list
_BETWEEN = {",", "/", "|", "&", *_LAST}
_CLOSERS = {")", "}", "]"}


def takes_any_word(flag: Flag) -> bool:
    return flag.is_settable and flag.type == "str" and flag.role is None and not choices_of(flag)


def words_after(words: Words, start: int, stop: int) -> Found | None:
    """A list behind the flag's name; a word alone may be anything."""
    index, told = start, False
    while words.at(index) in _LEADING | _TELLING:
        told = told or words.at(index) in _TELLING
        index += 1
    items, end = _listed(words, index, stop)
    if len(items) == 1 and not told:
        items = items[0].split("/")  # sgd/adam; beside other names, google/bert is one
    if not items or (len(items) == 1 and not told):
        return None
    return Found(tuple(items), "listed", end + (words.at(end) in _CLOSERS))


def list_with(words: Words, own: str) -> tuple[int, Found] | None:
    """Where a list has the script's own value: `adamw vs sgd` where that is adamw."""
    for place in words.places((own.lower(),)):
        start = place
        while words.at(start - 1) in _BETWEEN and _is_name(words, start - 2):
            start -= 2
        items, end = _listed(words, start, words.clause_end(start))
        if len(items) > 1 and end > place:
            return start, Found(tuple(own if item.lower() == own.lower() else item for item in items), "listed", end)
    return None


def _listed(words: Words, index: int, stop: int) -> tuple[list[str], int]:
    items: list[str] = []
    end, closing = index, False
    while index < stop and _is_name(words, index):
        end = _name_end(words, index, stop)
        items.append(words.shown(index, end))
        index = end
        if words.at(index) == "," and closing:
            break
        while index < stop and words.at(index) in _BETWEEN:
            closing = closing or words.at(index) in _LAST
            index += 1
        if index == end:
            break
    return list(dict.fromkeys(items)), end


def _name_end(words: Words, index: int, stop: int) -> int:
    """Behind the last part of google/bert."""
    end = index + 1
    while end + 1 < stop and words.at(end) == "/" and _is_name(words, end + 1) and words.is_tight(end):
        end += 2
    return end


def _is_name(words: Words, index: int) -> bool:
    if not 0 <= index < len(words.tokens) or not words.is_free(index):
        return False
    return words.tokens[index].is_word and words.tokens[index].text not in FILLER
