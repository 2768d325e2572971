"""Value expressions behind a flag: lists (`0.1, 0.2 and 0.5`), ranges (`between 0.1 and 1, 5 values`), words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from labwright.planning.goals.names import is_log_scaled
from labwright.planning.goals.tokens import Tokens
from labwright.planning.scan import Flag
from labwright.planning.scan.facts import plain_name

MOST_VALUES = 64
SEPARATORS = frozenset({",", "/", "|", "&", "and", "or", "vs", "versus", "against"})
_LAST_SEPARATORS = SEPARATORS - {",", "/", "|"}  # a comma behind one of these ends a list of words
_OPENERS, _CLOSERS = frozenset("([{"), frozenset(")]}")
_JOINERS = _OPENERS | {
    "=", ":", "-", "∈", "in", "of", "at", "is", "are", "as", "over", "among", "with", "to", "values", "value", "range",
    "the", "both", "either", "on", "a", "scale", "spaced",
}  # fmt: skip
LOG = frozenset({"log", "log-spaced", "log-scale", "logarithmic", "logarithmically"})
_LINEAR = frozenset({"linear", "linearly", "evenly"})
_RANGES = frozenset({"to", "-", "through"})
_DIVISIONS = frozenset({"values", "points", "samples"})
_AROUND_DIVISION = frozenset({"in", "on", "a", "with", "at", "scale", "scaled", "spaced", "(", ")", ",", "]", "}"})
_COUNTED = frozenset({
    "seed", "seeds", "epoch", "epochs", "run", "runs", "trial", "trials", "hour", "hours", "h", "hr", "hrs", "min",
    "mins", "minute", "minutes", "step", "steps", "gpu", "gpus", "times", "time", "repeats", "iterations", "iters",
    "random", "different", "values", "points", "x", "days", "day", "experiments", "percent", "per",
})  # fmt: skip
_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
_FEWEST_DOUBLED = 8


@dataclass(frozen=True, slots=True)
class Division:
    """How the goal wants a range to be divided."""

    count: int | None = None
    step: float | None = None
    scale: str = ""  # log, linear


@dataclass(frozen=True, slots=True)
class ValueList:
    values: tuple[Any, ...]
    scale: str  # listed, log, linear
    end: int  # the token after the last one that was read
    note: str = ""
    too_many: int = 0  # more values than a plan may try; `values` is empty then
    is_clear: bool = True  # False: the text can mean several things


def values_after(
    tokens: Tokens, start: int, stop: int, flag: Flag, division: Division = Division()
) -> ValueList | None:
    """Return the values between `start` and `stop`, or None if there are none."""
    index, is_range = start, False
    while index < stop and tokens.at(index) not in ("between", "from"):
        if tokens.number(index) is not None and tokens.at(index + 1) in _DIVISIONS:
            division, index = replace(division, count=int(tokens.number(index) or 0)), index + 2
            continue
        names_script = index in tokens.script or (tokens.at(index) == "for" and index + 1 in tokens.script)
        if not (names_script or tokens.at(index) in _JOINERS | LOG) or tokens.number(index) is not None:
            break
        is_range = is_range or tokens.at(index) == "range"
        if tokens.at(index) in LOG:
            division = replace(division, scale="log")
        index += 1
    if tokens.at(index) in ("between", "from"):
        return _range(tokens, index + 1, stop, flag, division)
    items, end = _items(tokens, index, stop, flag)
    if not items or tokens.at(index - 1) == "the":  # the best lr for the 10 classes
        return None
    if len(items) == 1 and tokens.number(index) is not None and tokens.at(end) in _RANGES:
        compares = any(tokens.at(place).startswith("compar") for place in range(max(0, start - 5), start))
        found = _range(tokens, index, stop, flag, division)
        return replace(found, is_clear=False) if found and compares else found
    is_clear = not _is_doubtful(tokens, index, end, flag)
    closed = end + (tokens.at(end) in _CLOSERS or _is_own_unit(tokens, end, flag))
    if is_range and len(items) == 2 and all(isinstance(item, int | float) for item in items) and items[0] < items[1]:
        return _divided(tokens, items[0], items[1], closed, stop, flag, division)
    return ValueList(tuple(items), "listed", closed, is_clear=is_clear)


def count_before(tokens: Tokens, end: int) -> tuple[Division, int]:
    """Read the count and scale in front of a flag, as in `three log-spaced learning rates`, and where it starts."""
    start, scale = end, ""
    while tokens.at(start - 1) in LOG | {"different"}:
        start -= 1
        scale = "log" if tokens.at(start) in LOG else scale
    count = tokens.number(start - 1) if tokens.is_free(start - 1) else None
    if isinstance(count, int) and tokens.at(start - 2) not in SEPARATORS:
        return Division(count=count, scale=scale), start - 1
    return Division(scale=scale), start


def values_before(tokens: Tokens, end: int, flag: Flag) -> tuple[tuple[Any, ...], int] | None:
    """Return the values in front of a flag (`20, 40 and 80 features`) and where they start."""
    start = end
    while start > 0 and tokens.is_free(start - 1):
        if tokens.at(start - 1) not in SEPARATORS and tokens.number(start - 1) is None:
            break
        start -= 1
    while start < end and tokens.number(start) is None:
        start += 1
    items, reached = _items(tokens, start, end, flag, skip_counts=False)
    return (tuple(items), start) if items and reached >= end else None


def words_after(tokens: Tokens, start: int, stop: int) -> ValueList | None:
    """Return names behind a flag that takes any text: `model_name resnet18 vs resnet50`, `model=vit`."""
    index, is_set = start, False
    while tokens.at(index) in _OPENERS | {"=", ":", "in", "of", "is", "are", "values"}:
        is_set = is_set or tokens.at(index) in ("=", ":")
        index += 1
    items: list[str] = []
    end, closing = index, False
    while index < stop and _is_name(tokens, index):
        end = index + 1
        while tokens.at(end) == "/" and tokens.is_tight(end) and end + 1 < stop and _is_name(tokens, end + 1):
            end += 2  # google/bert is one name
        items.append(tokens.shown(index, end))
        index = end
        while index < stop and tokens.at(index) in SEPARATORS and not (closing and tokens.at(index) == ","):
            closing = closing or tokens.at(index) in _LAST_SEPARATORS
            index += 1
        if index == end:
            break
    if not items or (len(items) == 1 and not is_set):
        return None
    return ValueList(tuple(dict.fromkeys(items)), "listed", end + (tokens.at(end) in _CLOSERS))


def _is_name(tokens: Tokens, index: int) -> bool:
    token = tokens.tokens[index]
    return tokens.is_free(index) and token.is_word and not token.is_filler


def _items(tokens: Tokens, index: int, stop: int, flag: Flag, *, skip_counts: bool = True) -> tuple[list[Any], int]:
    items: list[Any] = []
    end = index
    while index < stop and tokens.is_free(index):
        item = _item(tokens, index, flag, skip_counts=skip_counts)
        if item is None:
            break
        items.append(item)
        end = index = index + 1
        while index < stop and tokens.at(index) in SEPARATORS:
            index += 1
    return list(dict.fromkeys(items)), end


def _item(tokens: Tokens, index: int, flag: Flag, *, skip_counts: bool) -> Any:
    number, text = tokens.number(index), tokens.at(index)
    if number is not None:
        following = tokens.at(index + 1)
        if following == "x":  # `2x` is a count; a single `x` is between two parameters
            counts_other = tokens.tokens[index].end == tokens.tokens[index + 1].start
        else:
            counts_other = following in _COUNTED and not _is_own_unit(tokens, index + 1, flag)  # `3 seeds`
        is_word = text.isalpha() and skip_counts  # `lr three` is not a value, `one epoch` is
        return None if is_word or (skip_counts and counts_other) else number
    if flag.type == "bool":
        return _SWITCHES.get(text)
    return next((choice for choice in flag.choices if str(choice).lower() == text), None)


def _is_own_unit(tokens: Tokens, index: int, flag: Flag) -> bool:
    """Return whether `steps` in `warmup of 0, 100, 1000 steps` belongs to warmup_steps."""
    return tokens.at(index) in _COUNTED and tokens.at(index) in plain_name(flag.name).split("_")[1:]


def _is_doubtful(tokens: Tokens, start: int, end: int, flag: Flag) -> bool:
    """Return whether a number such as `0,01` or `1,024` may be one number or two."""
    doubtful = [tokens.at(index) for index in range(start, end) if index in tokens.doubtful]
    has_leading_zero = any(text[0] == "0" and text.isdigit() and len(text) > 1 for text in doubtful)
    return bool(doubtful) if flag.type == "float" else has_leading_zero


def _range(tokens: Tokens, index: int, stop: int, flag: Flag, division: Division) -> ValueList | None:
    low, middle = tokens.number(index), index + 1
    while middle < stop and tokens.at(middle) in _RANGES | {"and", "up"}:
        middle += 1
    high = tokens.number(middle) if middle < stop else None
    if low is None or high is None or middle == index + 1:
        return None
    found = _divided(tokens, low, high, middle + 1, stop, flag, division)
    goes_on = tokens.at(middle + 1) in _RANGES and tokens.number(middle + 2) is not None
    is_clear = low <= high and not goes_on and not _is_doubtful(tokens, index, middle + 1, flag)
    return replace(found, is_clear=is_clear)


def _divided(tokens: Tokens, low: float, high: float, end: int, stop: int, flag: Flag, division: Division) -> ValueList:
    division, end = _division_after(tokens, end, stop, division)
    if division.step:
        count = int((max(low, high) - min(low, high)) / abs(division.step) + 1e-9) + 1
    else:
        count = division.count or 0
    if count > MOST_VALUES:
        return ValueList((), "", end, too_many=count)
    whole = flag.type == "int" and low == int(low) and high == int(high)
    values, scale = spaced(low, high, division, whole=whole, log=is_log_scaled(flag))
    in_vain = scale == "linear" and division.scale == "log"
    note = f"a log scale cannot start at {min(low, high):g}, so the values are evenly spaced" if in_vain else ""
    return ValueList(tuple(values), scale, end, note)


def _division_after(tokens: Tokens, index: int, stop: int, division: Division) -> tuple[Division, int]:
    """Read `in steps of 2`, `in 5 steps`, `5 values`, `log-spaced` or `linear` behind a range."""
    end, last = index, min(stop, index + 10)
    while index < last:
        text, number = tokens.at(index), tokens.number(index)
        if text in ("steps", "step"):
            place = index + 1 + (tokens.at(index + 1) == "of")
            if not (step := tokens.number(place)):
                break
            division, index = replace(division, step=step), place
        elif text in LOG | _LINEAR:
            division = replace(division, scale="log" if text in LOG else "linear")
        elif number is not None and (
            tokens.at(index + 1) in _DIVISIONS or (tokens.at(index + 1) == "steps" and tokens.at(index - 1) == "in")
        ):
            division, index = replace(division, count=int(number)), index + 1
        elif text in _AROUND_DIVISION:
            index += 1
            continue
        else:
            break
        index += 1
        end = index
    return division, end


def spaced(low: float, high: float, division: Division, *, whole: bool, log: bool) -> tuple[list[float], str]:
    """Return values from low to high, and their scale. `log` is the usual scale of the flag."""
    low, high = min(low, high), max(low, high)
    if low == high:
        return [low], "listed"
    if division.step:
        count = min(int((high - low) / abs(division.step) + 1e-9) + 1, MOST_VALUES)
        return _rounded([low + abs(division.step) * index for index in range(count)], whole=whole), "linear"
    powers = whole and not division.count and low >= _FEWEST_DOUBLED and _is_power(low) and _is_power(high)
    is_log = low > 0 and (division.scale == "log" or (not division.scale and (log or high / low >= 100 or powers)))
    if is_log:
        return _rounded(_logarithmic(low, high, division.count, whole=whole), whole=whole), "log"
    return _rounded(_even(low, high, division.count, whole=whole), whole=whole), "linear"


def _logarithmic(low: float, high: float, count: int | None, *, whole: bool) -> list[float]:
    if not count and whole and _is_power(low) and _is_power(high):
        return [low * 2**power for power in range(round(math.log2(high / low)) + 1)][:MOST_VALUES]
    decades = math.log10(high / low)
    count = count or (round(decades) + 1 if decades > 2.5 else max(3, round(2 * decades) + 1))
    count = max(2, min(count, MOST_VALUES))
    inner = [low * (high / low) ** (index / (count - 1)) for index in range(1, count - 1)]
    digits = 1 if len({float(f"{value:.0e}") for value in inner} | {low, high}) == count else 3
    return [low, *(float(f"{value:.{digits - 1}e}") for value in inner), high]


def _even(low: float, high: float, count: int | None, *, whole: bool) -> list[float]:
    if not count and whole and high - low <= 6:
        return [low + index for index in range(int(high - low) + 1)]
    # Without a count, take the one of these whose step is the roundest number.
    count = count or min((5, 6, 4, 3), key=lambda count: len(f"{(high - low) / (count - 1):.10g}"))
    count = max(2, min(count, MOST_VALUES))
    return [low + (high - low) * index / (count - 1) for index in range(count)]


def _rounded(values: list[float], *, whole: bool) -> list[float]:
    tidy = (float(f"{value:.10g}") for value in values)
    return list(dict.fromkeys(round(value) if whole else value for value in tidy))


def _is_power(value: float) -> bool:
    return value >= 1 and value == int(value) and (int(value) & (int(value) - 1)) == 0


def unfit(flag: Flag, values: tuple[Any, ...]) -> list[Any]:
    """Return the values that the flag does not take."""
    return [value for value in values if not _fits(flag, value)]


def _fits(flag: Flag, value: Any) -> bool:
    if flag.type == "bool":
        return isinstance(value, bool) or value in (0, 1)
    if flag.choices and not isinstance(value, bool):
        return str(value).lower() in {str(choice).lower() for choice in flag.choices}
    if flag.type == "int":
        return isinstance(value, int | float) and value == int(value)
    return flag.type != "float" or isinstance(value, int | float)


def typed(flag: Flag, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values in the flag's type, without repetitions."""
    convert = {"bool": bool, "int": int}.get(flag.type)
    if flag.type == "float":
        return tuple(dict.fromkeys(float(value) if isinstance(value, int) else value for value in values))
    return tuple(dict.fromkeys(convert(value) if convert else value for value in values))
