"""What a goal does not want: `don't use adam`, `never dropout 0.5`, `drop lr 0.2`, `all optimizers except sgd`."""

from __future__ import annotations

from dataclasses import dataclass

from labwright.planning.goals.words import Words

_DENYING = {"not", "never", "avoid", "avoiding", "exclude", "excluding", "dont"}
_TAKING_OUT = {"drop", "remove", "skip"}  # of what was to be varied
_EXCEPTING = {"except", "without"}  # before a choice; `everything fixed except lr` is about what varies
_LEAVING = {"touch", "change", "vary", "varying", "tune", "tuning", "sweep", "sweeping", "alter", "modify"}
_BETWEEN = _LEAVING | {
    "the",
    "a",
    "any",
    "our",
    "use",
    "using",
    "try",
    "trying",
    "run",
    "set",
    "include",
    "with",
    "want",
}


@dataclass(frozen=True, slots=True)
class Denial:
    start: int  # where its words begin
    leaves: bool  # the parameter stays as the script has it: nothing is switched off
    keeps_value: bool = False  # a value behind it is one to keep: don't change batch size 32


def denial_before(words: Words, start: int, end: int) -> Denial | None:
    """Of a parameter between these places."""
    place, verbs = _before(words, start)
    if words.at(place) in _TAKING_OUT and words.at(end) not in ("to", "from", "by"):  # drop the lr to 0.01
        return Denial(place, leaves=True)
    begin = _denying(words, place)
    leaves = bool(verbs & _LEAVING)
    return None if begin is None else Denial(begin, leaves=leaves, keeps_value=leaves)


def denied_choice(words: Words, index: int) -> int | None:
    """Where the words begin that deny the choice at this place."""
    place, _verbs = _before(words, index)
    return place if words.at(place) in _EXCEPTING | _TAKING_OUT else _denying(words, place)


def _before(words: Words, place: int) -> tuple[int, set[str]]:
    verbs = set()
    while words.at(place - 1) in _BETWEEN:
        place -= 1
        verbs.add(words.at(place))
    return place - 1, verbs


def _denying(words: Words, place: int) -> int | None:
    """Where `not`, `do not`, `don't` begins; `whether or not` denies nothing."""
    if words.at(place) == "t" and words.at(place - 1) == "'":
        return place - 2
    if words.at(place) not in _DENYING or words.at(place - 1) == "or":
        return None
    return place - (words.at(place - 1) in ("do", "does", "should", "must", "but"))
