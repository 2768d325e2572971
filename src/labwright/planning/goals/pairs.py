"""Values that belong to one value of another flag: `sgd lr 0.1, 0.01 and adam lr 0.001`.

Rules make whole grids, which would try what nobody named; so it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from labwright.planning.goals.facts import Question
from labwright.planning.goals.varied import Given, Varied
from labwright.planning.goals.words import Words

_BESIDE = {"at", "with", "try", "use", "uses", "using", "gets", "takes", "(", "=", ":", "@", "-"}
_MOST_GROUPS = 3


@dataclass(frozen=True, slots=True)
class _Group:
    owner: tuple[Any, ...]
    values: tuple[Any, ...]


def about_pairs(found: Varied) -> list[Question]:
    """One question a pair of flags, with the whole grid and each part of it as answers to choose from."""
    asked = []
    for first, second in _paired(found):
        groups = _groups(found.given[first], found.given[second])
        named = "; ".join(f"{_listed(group.owner)}: {_listed(group.values)}" for group in groups)
        text = (
            f"{second} is named for each {first} apart ({named}). By rules each value is tried with each: "
            "which grid is meant? What it leaves out can have a plan of its own."
        )
        asked.append(Question(about="values", text=text, suggestions=_grids(first, second, groups)))
    return asked


def about_loose_values(words: Words, found: Varied) -> list[Question]:
    """`adam at 1e-3, sgd at 0.1`: numbers beside choices, and no word says of what."""
    named = sorted(given.place for flag in found.chosen for given in found.given[flag])
    newest = min(found.lines.values(), default=0)
    for place in named:
        number = place + 1
        while words.at(number) in _BESIDE:
            number += 1
        if words.is_loose_number(number) and words.line(place) <= newest:
            text = f"Of which parameter is {words.shown(number, number + 1)} in “{words.shown(place, number + 1)}”?"
            return [Question(about="values", text=f"{text} Which values of it are to be tried?")]
    return []


def _paired(found: Varied) -> list[tuple[str, str]]:
    several = [
        variation.flag
        for variation in found.variations
        if len({given.values for given in found.given.get(variation.flag, ())}) > 1
    ]
    in_order = sorted(several, key=lambda name: found.given[name][0].place)
    return [
        (first, second)
        for first, second in combinations(in_order, 2)
        if len({group.owner for group in _groups(found.given[first], found.given[second])}) > 1
    ]


def _groups(owners: list[Given], given: list[Given]) -> list[_Group]:
    """Each list of values with what stands before it."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for one in given:
        before = [owner.values for owner in owners if owner.place < one.place]
        if before:
            found[before[-1]] = tuple(dict.fromkeys((*found.get(before[-1], ()), *one.values)))
    return [_Group(owner, values) for owner, values in found.items()]


def _grids(first: str, second: str, groups: list[_Group]) -> tuple[str, ...]:
    owners = _listed(tuple(dict.fromkeys(value for group in groups for value in group.owner)))
    values = _listed(tuple(dict.fromkeys(value for group in groups for value in group.values)))
    parts = [group for group in groups if len(group.owner) * len(group.values) > 1]  # one run alone is no experiment
    return (
        f"{first} {owners}, {second} {values}",
        *(f"{first} {_listed(group.owner)}, {second} {_listed(group.values)}" for group in parts[:_MOST_GROUPS]),
    )


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(map(str, values))
