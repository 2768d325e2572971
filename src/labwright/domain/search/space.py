"""The search space of a sweep: lists, ranges and fixed values. A parameter may depend on the value of another."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from labwright.domain.errors import Invalid

NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
MAX_PARAMETERS = 100
MAX_VALUES = 100_000  # of one parameter
_NAME = re.compile(NAME)
_RANGE_FIELDS = {"min", "max", "log", "int", "step", "count", "when"}
_LIST_FIELDS = {"values", "when"}
_FORMS = "Write a list of values, a fixed value, or a range such as {min: 0.001, max: 0.1, log: true}."
_PLAIN_NUMBER = 2**53

_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode

Config = dict[str, Any]
Condition = tuple[tuple[str, tuple[Any, ...]], ...]  # each named parameter must have one of these values


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    name: str
    values: tuple[Any, ...]
    when: Condition = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    name: str
    low: float
    high: float
    log: bool = False
    whole: bool = False
    step: float | None = None
    count: int | None = None
    when: Condition = ()

    def at(self, share: float) -> int | float:
        """Return the value at a position between 0 and 1 of the range."""
        if self.log:
            value = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        return self.snap(value)

    def snap(self, value: float) -> int | float:
        """Round to the range, to its steps, and to six digits."""
        if self.step is not None:
            steps = math.floor((value - self.low) / self.step + 0.5)
            return self._stepped(max(0, min(steps, self._last_step)))
        if self.whole:
            return int(max(self.low, min(self.high, math.floor(value + 0.5))))
        return max(self.low, min(self.high, float(f"{value:.6g}")))

    @property
    def _last_step(self) -> int:
        assert self.step is not None
        return math.floor((self.high - self.low) / self.step + 1e-9)

    def _stepped(self, steps: int) -> int | float:
        from decimal import Decimal  # imported here: few sweeps have a stepped range

        exact = Decimal(repr(self.low)) + steps * Decimal(repr(self.step))  # 0.3, not 0.30000000000000004
        return int(exact) if self.whole else float(exact)

    @property
    def is_discrete(self) -> bool:
        return self.step is not None or self.count is not None or (self.whole and not self.log)

    @property
    def size(self) -> int | None:
        """The number of values, or None if the range is continuous."""
        if self.step is not None:
            return self._last_step + 1
        if self.whole:
            return int(self.high) - int(self.low) + 1
        return None

    def grid(self) -> tuple[int | float, ...]:
        if self.step is not None:
            return tuple(self._stepped(index) for index in range(self._last_step + 1))
        if self.count is not None:
            last = max(1, self.count - 1)
            return tuple(dict.fromkeys(self.at(index / last) for index in range(self.count)))
        return tuple(range(int(self.low), int(self.high) + 1))

    @property
    def grid_size(self) -> int:
        return self.count if self.step is None and self.count is not None else self.size or 0


Parameter = Choice | Range


@dataclass(frozen=True, slots=True)
class Space:
    """Parameters, sorted so that each comes after those it depends on."""

    parameters: tuple[Parameter, ...]
    by_name: dict[str, Parameter] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def controlling(self) -> tuple[Choice, ...]:
        """The parameters that others depend on."""
        named = {name for parameter in self.parameters for name, _ in parameter.when}
        return tuple(p for p in self.parameters if p.name in named and isinstance(p, Choice))


def applies(parameter: Parameter, config: Mapping[str, Any]) -> bool:
    """Return whether the parameter applies to this configuration."""
    return all(name in config and _is_one_of(config[name], values) for name, values in parameter.when)


def _is_one_of(value: Any, values: Iterable[Any]) -> bool:
    return any(type(value) is type(other) and value == other for other in values)


def parse_space(parameters: Mapping[str, Any]) -> Space:
    """Parse the parameters of a sweep. Raise Invalid with the path of the first fault."""
    if not parameters:
        raise Invalid("There are no parameters.", hint=_FORMS, field=("parameters",))
    if len(parameters) > MAX_PARAMETERS:
        raise Invalid(
            f"There are more than {MAX_PARAMETERS} parameters.",
            hint="Use fixed values in the command for some of them.",
            field=("parameters",),
        )
    found = {name: _parse(name, spec) for name, spec in parameters.items()}
    for parameter in found.values():
        _check_condition(parameter, found)
    ordered = _parents_first(found)
    return Space(tuple(ordered), {parameter.name: parameter for parameter in ordered})


def _parse(name: str, spec: Any) -> Parameter:
    place = ("parameters", name)
    if not _NAME.fullmatch(name) or len(name) > 100:
        raise Invalid(
            f"{name!r} cannot be the name of a parameter.",
            hint="Names start with a letter and contain letters, digits, '_', '.' and '-'.",
            field=place,
        )
    if isinstance(spec, list):
        return Choice(name=name, values=_values(spec, place))
    if not isinstance(spec, dict):
        return Choice(name=name, values=_values([spec], place))
    if "min" in spec or "max" in spec:
        return _parse_range(name, spec, place)
    if "values" in spec:
        _refuse_unknown(spec, _LIST_FIELDS, place)
        if not isinstance(spec["values"], list):
            raise Invalid("values must be a list.", hint="Write values: [1, 2, 3].", field=(*place, "values"))
        return Choice(name=name, values=_values(spec["values"], (*place, "values")), when=_when(spec, place))
    if set(spec) <= {"value", "when"} and "value" in spec:
        return Choice(name=name, values=_values([spec["value"]], (*place, "value")), when=_when(spec, place))
    raise Invalid(f"The values of {name} are not clear.", hint=_FORMS, field=place)


def _refuse_unknown(spec: Mapping[str, Any], known: set[str], place: tuple[str, ...]) -> None:
    for key in spec:
        if key not in known:
            raise Invalid(
                f"{key!r} is not a field here.", hint=f"Known: {', '.join(sorted(known))}.", field=(*place, key)
            )


def _values(values: list[Any], place: tuple[str, ...]) -> tuple[Any, ...]:
    if not values:
        raise Invalid(f"{place[1]} has an empty list of values.", hint="List at least one value.", field=place)
    if len(values) > MAX_VALUES:
        raise Invalid(f"{place[1]} has {len(values)} values.", hint=f"List at most {MAX_VALUES}.", field=place)
    seen: set[str] = set()
    for index, value in enumerate(values):
        if isinstance(value, float) and not math.isfinite(value):
            raise Invalid(
                f"{value} is not a valid value for {place[1]}.", hint="Use finite numbers.", field=(*place, index)
            )
        if isinstance(value, str) and "\0" in value:  # inside a list or an object it is written as \u0000
            raise Invalid(
                f"A value of {place[1]} contains a NUL character, which a command cannot contain.",
                hint="Remove it.",
                field=(*place, index),
            )
        text = canonical(value)
        if text in seen:
            raise Invalid(f"{place[1]} has {text} twice.", hint="List each value once.", field=(*place, index))
        seen.add(text)
    return tuple(values)


def _parse_range(name: str, spec: dict[str, Any], place: tuple[str, ...]) -> Range:
    _refuse_unknown(spec, _RANGE_FIELDS, place)
    for key in ("min", "max"):
        if key not in spec:
            raise Invalid(f"The range of {name} has no {key}.", hint="Set both min and max.", field=place)
        _check_number(spec[key], f"{key} of {name}", (*place, key))
    for key in ("log", "int"):
        if not isinstance(spec.get(key, False), bool):
            raise Invalid(f"{key} of {name} must be true or false.", hint=f"Write {key}: true.", field=(*place, key))
    low, high, log = spec["min"], spec["max"], spec.get("log", False)
    # Whole min, max and step imply whole numbers, as in 16 to 128 by 16; 0 to 1 without a step does not.
    whole = spec.get("int", all(type(spec.get(key)) is int for key in ("min", "max", "step")))
    if low >= high:
        raise Invalid(
            f"{name} has min {low:g} and max {high:g}.", hint="min must be less than max.", field=(*place, "min")
        )
    if log and low <= 0:
        raise Invalid(
            f"A logarithmic range must start above 0, but {name} has min {low:g}.",
            hint="Raise min, or remove log.",
            field=(*place, "min"),
        )
    if whole and (low != int(low) or high != int(high)):
        raise Invalid(
            f"{name} has int: true, but min or max is not whole.",
            hint="Use whole numbers for min and max.",
            field=place,
        )
    return Range(
        name=name,
        low=float(low) if not whole else int(low),
        high=float(high) if not whole else int(high),
        log=log,
        whole=whole,
        step=_step(spec, whole, place),
        count=_count(spec, place),
        when=_when(spec, place),
    )


def _check_number(value: Any, what: str, place: tuple[str | int, ...]) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Invalid(f"{what} must be a number, not {value!r}.", hint=_number_instead_of(value), field=place)
    if abs(value) > _PLAIN_NUMBER:
        raise Invalid(f"{what} is too large.", hint="Use numbers up to 2^53.", field=place)


def _number_instead_of(value: Any) -> str:
    try:
        meant = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        meant = math.nan
    return f"It is text. Write {meant:g} without quotes." if math.isfinite(meant) else "Use a finite number."


def _step(spec: Mapping[str, Any], whole: bool, place: tuple[str, ...]) -> float | None:
    if spec.get("step") is None:
        return None
    step = spec["step"]
    _check_number(step, f"step of {place[1]}", (*place, "step"))
    if step <= 0 or spec.get("log") or (whole and step != int(step)):
        raise Invalid(
            f"{step} cannot be the step of {place[1]}.",
            hint="A step is positive, and whole if the values are. A logarithmic range takes count instead.",
            field=(*place, "step"),
        )
    return int(step) if whole else float(step)


def _count(spec: Mapping[str, Any], place: tuple[str, ...]) -> int | None:
    count = spec.get("count")
    if count is None:
        return None
    if type(count) is not int or not 1 < count <= MAX_VALUES or spec.get("step") is not None:
        raise Invalid(
            f"{count!r} cannot be the count of {place[1]}.",
            hint="count is the number of grid values, 2 or more. Set count or step, not both.",
            field=(*place, "count"),
        )
    return count


def _when(spec: Mapping[str, Any], place: tuple[str, ...]) -> Condition:
    when = spec.get("when")
    if when is None:
        return ()
    if not isinstance(when, dict) or not when:
        raise Invalid(
            "when must map parameters to values.", hint="For example when: {optimizer: sgd}", field=(*place, "when")
        )
    return tuple((name, tuple(value) if isinstance(value, list) else (value,)) for name, value in when.items())


def _check_condition(parameter: Parameter, found: Mapping[str, Parameter]) -> None:
    for name, values in parameter.when:
        place = ("parameters", parameter.name, "when", name)
        other = found.get(name)
        if other is None or name == parameter.name:
            raise Invalid(f"when names {name!r}, which is not another parameter.", hint="Check the name.", field=place)
        if not isinstance(other, Choice):
            raise Invalid(
                f"{name} is a range and cannot be used in when.",
                hint="Use a parameter with a list of values.",
                field=place,
            )
        for value in values:
            if not _is_one_of(value, other.values):
                shown = ", ".join(canonical(known) for known in other.values[:10])
                raise Invalid(f"{name} is never {canonical(value)}.", hint=f"Its values are: {shown}.", field=place)


def _parents_first(found: Mapping[str, Parameter]) -> list[Parameter]:
    left, ordered = dict(found), []
    while left:
        free = [p for p in left.values() if not any(name in left for name, _ in p.when)]
        if not free:
            name = next(iter(left))
            raise Invalid(
                f"{', '.join(left)} depend on each other.",
                hint="Remove one of the conditions.",
                field=("parameters", name, "when"),
            )
        ordered += free
        left = {name: p for name, p in left.items() if p not in free}
    return ordered


def canonical(value: Any) -> str:
    """Return one text per value: 1 and 1.0 are the same number."""
    return _encode(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < _PLAIN_NUMBER:
        return int(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
