"""Values behind a parameter: lists, ranges, switches, as people write them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from labwright.planning.goals.spacing import MOST_VALUES, Wish, asked_for, spaced
from labwright.planning.goals.synonyms import choices_of, is_log_by_nature
from labwright.planning.goals.words import Words
from labwright.planning.scan import Flag
from labwright.planning.scan.facts import plain_name

_JOINERS = {
    "-", "in", "of", "at", "=", ":", "(", "{", "[", "is", "are", "as", "values", "value", "range", "ranging", "over",
    "among", "with", "set", "both", "either", "to", "using", "fixed", "be", "like", "on", "by", "varying", "anywhere",
    "the", "for", "each", "sweep", "search", "grid", "<", ">", "somewhere", "∈",
}  # fmt: skip
_SEPARATORS = {",", "/", "and", "or", "vs", "versus", "against", "&", "|", "then", "better", "worse", "than", "rather"}
_RANGES = {"to", "-", "through", "until", "till", ".."}
_STEPS = {"steps", "step", "increments", "increment", "stride"}
_FACTORS = {"factors", "factor", "powers", "multiples"}
_LINEAR = {"linear", "linearly", "linspace", "evenly"}
_BETWEEN = {
    "in", "on", "a", "of", "by", "with", "at", "using", "scale", "scaled", "spaced", "space", "(", ")", ",", "]", "}",
}  # fmt: skip
_LOG = {
    "log", "log-spaced", "logarithmic", "logarithmically", "log-uniform", "log-uniformly", "geometric", "log-scale",
    "logspace",
}  # fmt: skip
_SPACING = {"spaced", "scale", "scaled", "space", "a", "steps", "values"}
_DIVISIONS = ("values", "points", "pts", "samples", "steps", "settings", "levels")
_FRACTIONS = {"tenth", "tenths", "hundredth", "hundredths", "thousandth", "thousandths", "percent", "per"}
_NO_WISH = Wish()
_COMPARED = {"compare", "comparing", "compared"}
_CLOSERS = {")", "}", "]"}
_SWITCH_WORDS = {
    "true": True,
    "on": True,
    "yes": True,
    "enabled": True,
    "false": False,
    "off": False,
    "no": False,
    "disabled": False,
}
_NOTHING = {"none", "zero", "off"}  # of a number
_COUNTED = {
    "seed", "seeds", "epoch", "epochs", "run", "runs", "trial", "trials", "hour", "hours", "h", "hr", "hrs", "min",
    "mins", "minute", "minutes", "step", "steps", "gpu", "gpus", "times", "time", "repeats", "repetitions",
    "iterations", "iters", "random", "different", "values", "points", "x", "d", "days", "day", "experiments",
    "replicates",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    values: tuple[Any, ...]
    scale: str
    end: int  # the token after the last one read
    note: str = ""  # what was done otherwise than the words say
    too_many: int = 0  # so many values are asked for; then none are given


def values_after(words: Words, start: int, stop: int, flag: Flag, before: Wish = _NO_WISH) -> Found | None:
    """What stands behind a parameter's name, before the next one. `before`: what was said in front of it."""
    index, interval, log, count = start, False, False, before.count
    while index < stop:
        if words.number(index) is not None and words.at(index + 1) in _DIVISIONS:
            count, index = int(words.number(index) or 0), index + 2
            continue
        joins = words.at(index) in _JOINERS | _LOG or (words.at(index) == "a" and words.at(index + 1) in _LOG)
        if not joins and words.is_free(index) and not (log and words.at(index) in _SPACING):
            break
        interval = interval or words.at(index) in ("range", "ranging", "anywhere")
        log = log or words.at(index) in _LOG
        index += 1
    wish = replace(before, count=count, scale="log" if log else before.scale)
    if words.at(index) in ("between", "from"):
        return _range(words, index + 1, stop, flag, wish)
    items, end = _items(words, index, stop, flag)
    if not items or words.at(index - 1) == "the":  # the best lr for the 10 classes
        return None
    if len(items) == 1 and isinstance(items[0], int | float) and words.at(end) in _RANGES | {"."}:
        if words.at(end) == "to" and _is_compared(words, start):
            while words.at(end) == "to" and (more := _items(words, end + 1, stop, flag))[0]:
                items, end = [*items, *more[0]], more[1]
            return Found(tuple(items), "listed", end)
        interval_found = _range(words, index, stop, flag, wish)
        if interval_found or words.at(end) != ".":  # else it ends the sentence
            return interval_found
    closed = end + (words.at(end) in _CLOSERS or _is_own_unit(words, end, flag))
    if len(items) == 2 and words.at(index - 1) in ("[", "(") and _is_interval(items, flag, told=interval):
        return _divided(words, items[0], items[1], closed, stop, flag, wish)
    return Found(tuple(items), "listed", closed)


def _is_compared(words: Words, start: int) -> bool:
    """`compare lr 0.1 to 0.01` names two values, and no range."""
    return bool({words.at(index) for index in range(max(0, start - 5), start)} & _COMPARED)


def values_before(words: Words, end: int, flag: Flag) -> tuple[tuple[Any, ...], int] | None:
    """`0.1, 0.01 and 0.001` in front of `learning rates`: the values, and where they begin."""
    start = end
    while (
        start > 0
        and words.is_free(start - 1)
        and (words.at(start - 1) in _SEPARATORS or words.number(start - 1) is not None)
    ):
        start -= 1
    while start < end and words.number(start) is None:
        start += 1
    items, reached = _items(words, start, end, flag, counted=False)
    return (tuple(items), start) if items and reached >= end else None


def _is_interval(items: list[Any], flag: Flag, *, told: bool) -> bool:
    numbers = [item for item in items if isinstance(item, int | float)]
    if len(numbers) < 2 or numbers[0] >= numbers[1]:
        return False
    return told or (is_log_by_nature(flag) and numbers[0] > 0 and numbers[1] / numbers[0] >= 100)


def _items(words: Words, index: int, stop: int, flag: Flag, *, counted: bool = True) -> tuple[list[Any], int]:
    items: list[Any] = []
    end = index
    while index < stop:
        item = _item(words, index, flag, counted=counted)
        if item is None:
            break
        items.append(item)
        end = index = index + 1
        while index < stop and (words.at(index) in _SEPARATORS or _sets_beside(words, index)):
            index += 1
    return list(dict.fromkeys(items)), end


def _sets_beside(words: Words, index: int) -> bool:
    """`0.1 with 0.01`: a second value, and not what something else has."""
    following = words.at(index + 2)
    alone = not following or following in _SEPARATORS or not following[0].isalpha()
    return words.at(index) == "with" and words.number(index + 1) is not None and alone


def _item(words: Words, index: int, flag: Flag, *, counted: bool) -> Any:
    number, text = words.number(index), words.at(index)
    if number is not None:
        of_something_else = (counted and _counts(words, index, flag)) or words.at(index + 1) in _FRACTIONS
        return None if of_something_else else number
    if flag.type == "bool" and text in _SWITCH_WORDS:
        return _SWITCH_WORDS[text]
    if flag.type in ("int", "float") and text in _NOTHING:
        return 0
    return next((choice for choice in choices_of(flag) if choice.lower() == text), None)


def _counts(words: Words, index: int, flag: Flag) -> bool:
    """Whether the number says how many of something else: `3 seeds`, `2x`. A single `x` stands between parameters."""
    following = words.at(index + 1)
    if following == "x":
        return words.tokens[index].end == words.tokens[index + 1].start
    return following in _COUNTED and not _is_own_unit(words, index + 1, flag)


def _is_own_unit(words: Words, index: int, flag: Flag) -> bool:
    """`warmup of 0, 100, 1000 steps` for warmup_steps."""
    return words.at(index) in _COUNTED and words.at(index) in plain_name(flag.name).split("_")[1:]


def _range(words: Words, index: int, stop: int, flag: Flag, wish: Wish) -> Found | None:
    """`A and B`, `A to B`, `A - B`, `A..B`."""
    low = words.number(index)
    middle = index + 1
    while middle < stop and words.at(middle) in _RANGES | {"and", ".", "up"}:
        middle += 1
    high = words.number(middle)
    if low is None or high is None or middle == index + 1 or middle >= len(words.tokens):
        return None
    return _divided(words, low, high, middle + 1, stop, flag, wish)


def _divided(words: Words, low: float, high: float, end: int, stop: int, flag: Flag, before: Wish) -> Found:
    wish, end = _wish(words, end, stop, before)
    if (count := asked_for(low, high, wish)) > MOST_VALUES:
        return Found((), "", end, too_many=count)
    whole = flag.type == "int" and low == int(low) and high == int(high)
    values, scale = spaced(low, high, whole=whole, by_nature_log=is_log_by_nature(flag), wish=wish)
    in_vain = scale == "linear" and (wish.scale == "log" or wish.factor)
    note = f"no log scale begins at {min(low, high):g}, so the values are evenly spaced" if in_vain else ""
    return Found(tuple(values), scale, end, note)


def _wish(words: Words, index: int, stop: int, before: Wish) -> tuple[Wish, int]:
    """`in steps of 2`, `in 5 steps`, `by factors of 10`, `powers of two`, `log-spaced`, `5 values`."""
    step, factor, count, scale = before.step, before.factor, before.count, before.scale
    end, last = index, min(stop, index + 10)
    while index < last:
        text, number = words.at(index), words.number(index)
        if text in _STEPS and (found := _number_near(words, index + 1, last)):
            step, index = found
        elif text in _FACTORS and (found := _number_near(words, index + 1, last)):
            factor, index = found
        elif text in _LOG:
            scale = "log"
        elif text in _LINEAR:
            scale = "linear"
        elif number is not None and words.at(index + 1) in _DIVISIONS:
            count, index = int(number), index + 1
        elif text not in _BETWEEN:
            break
        else:
            index += 1
            continue
        index += 1
        end = index
    return Wish(count=count, step=step, factor=factor, scale=scale), end


def _number_near(words: Words, index: int, stop: int) -> tuple[float, int] | None:
    while index < stop and words.at(index) in ("of", "size", "="):
        index += 1
    number = words.number(index)
    return (number, index) if number else None
