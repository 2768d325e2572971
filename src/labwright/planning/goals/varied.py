"""What was read of what varies, and how values come into it: only such as the flag takes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from labwright.planning.goals.facts import Variation
from labwright.planning.scan import Flag


@dataclass(frozen=True, slots=True)
class Given:
    """Values of a flag where the goal names them: at one place of perhaps several."""

    place: int
    values: tuple[Any, ...]


@dataclass(slots=True)
class Varied:
    """What was read; `open` are flags to vary whose values the goal leaves out."""

    variations: list[Variation] = field(default_factory=list)
    fixed: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # where a flag is named first: that line is the newest word
    added: list[tuple[Flag, tuple[Any, ...]]] = field(default_factory=list)  # to what is named elsewhere
    open: list[tuple[Flag, int | None]] = field(default_factory=list)
    lacking_from: int = 0  # where the last of those is named
    unsettable: list[Flag] = field(default_factory=list)
    unclear: list[tuple[Flag, str]] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # parameters that the script does not have
    owners: set[str] = field(default_factory=set)  # named only to say whose parameter another one is
    named_only: list[Flag] = field(default_factory=list)  # with no value, and not to be varied
    given: dict[str, list[Given]] = field(default_factory=dict)  # each time that a flag is given values
    chosen: list[str] = field(default_factory=list)  # flags that only the names of their choices tell
    denied: dict[str, list[Any]] = field(default_factory=dict)  # values that are not to be tried
    left: set[str] = field(default_factory=set)  # not to be varied, as the goal says


def keep(
    flag: Flag, values: tuple[Any, ...], scale: str, text: str, found: Varied, *, note: str = "", beside: bool = False
) -> None:
    """`beside`: a second value joins the first, as in `sgd with lr 0.1 or adam with lr 0.01`."""
    if not flag.is_settable:
        found.unsettable.append(flag)
        return
    wrong = [value for value in values if not _fits(flag, value)]
    if wrong:
        found.unclear.append((flag, f"{flag.name} does not take {', '.join(map(str, wrong[:3]))}: which values?"))
        return
    before = (found.fixed.pop(flag.name),) if beside and flag.name in found.fixed else ()
    typed = typed_values(flag, (*before, *values))
    if len(typed) == 1:
        found.fixed[flag.name] = typed[0]
    else:
        found.variations.append(Variation(flag=flag.name, values=typed, scale=scale, words=text, note=note))


def fit(flag: Flag, values: tuple[Any, ...]) -> bool:
    return all(_fits(flag, value) for value in values)


def _fits(flag: Flag, value: Any) -> bool:
    if flag.type == "bool":
        return isinstance(value, bool) or value in (0, 1)
    if flag.choices and not isinstance(value, bool):
        return str(value).lower() in {str(choice).lower() for choice in flag.choices}
    if flag.type == "int":
        return isinstance(value, int | float) and value == int(value)
    return flag.type != "float" or isinstance(value, int | float)


def typed_values(flag: Flag, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(as_type(flag, value) for value in values))


def as_type(flag: Flag, value: Any) -> Any:
    if flag.type == "bool":
        return bool(value)
    if flag.type == "float" and isinstance(value, int):
        return float(value)
    return int(value) if flag.type == "int" else value


def take_out_denied(found: Varied) -> None:
    varied, found.variations = found.variations, []
    for variation in varied:
        kept = tuple(value for value in variation.values if value not in found.denied.get(variation.flag, ()))
        if len(kept) == 1 < len(variation.values):
            found.fixed[variation.flag] = kept[0]
        elif kept:
            found.variations.append(replace(variation, values=kept))
    found.fixed = {name: value for name, value in found.fixed.items() if value not in found.denied.get(name, ())}
