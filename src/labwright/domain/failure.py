"""Failures as kinds: a traceback without what differs by chance, and whether a configuration lies where one failed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line \d+, in (?P<function>\S+)')
_BY_CHANCE = re.compile(r"0x[0-9a-fA-F]+|\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
_PLACES = re.compile(r"(?:/[\w.+-]+)+")
_FACTOR = 2.0  # numbers that differ by less than this are neighbours
_NOT_PART = ("seed",)
_PLACE = r"""(?:'[^'\n]*activate'|"[^"\n]*activate"|(?:'[^'\n]*'|"[^"\n]*"|[^\s'"&;])*activate)"""
_ACTIVATES = re.compile(
    rf"(?:\s*(?:(?:source|\.)\s+{_PLACE}|(?:conda|mamba|micromamba)\s+activate\s+\S+?)\s*(?:&&|;|\n))+"
)
_LONGEST_READ = 20_000  # characters; beyond it the shell's rules for words would take minutes
_OF_ENVIRONMENT = ("ModuleNotFoundError", "ImportError")
Params = Mapping[str, Any]


def signature(traceback: str) -> str:
    """Where it was raised and what, the same for runs that failed for the same reason."""
    lines = traceback.strip().splitlines()
    frames = [_frame(found) for line in lines if (found := _FRAME.match(line))]
    said = lines[-1].strip() if lines else ""
    said = _BY_CHANCE.sub("#", _PLACES.sub("/…", said))
    return " < ".join([said, *reversed(frames[-3:])])[:500]


def _frame(found: re.Match[str]) -> str:
    return f"{found['file'].rsplit('/', 1)[-1]}:{found['function']}"


def shape(command: str) -> tuple[str, ...]:
    """What is run, without the values of its options. With which seed and in which environment is no part of it."""
    return tuple(word for word, _ in words_and_values(command) if word.lstrip("-") not in _NOT_PART)


def params_of(command: str, params: Params) -> dict[str, Any]:
    """The configuration: what was said of it, else what the command's options say. The seed is no part of it."""
    found = dict(params) or {word.lstrip("-"): value for word, value in words_and_values(command) if value is not None}
    return {name: _number(value) for name, value in found.items() if name not in _NOT_PART}


def activation_of(command: str) -> str:
    """The words at its beginning that choose an environment."""
    found = _ACTIVATES.match(command)
    return found.group(0) if found else ""


def may_fail_alike(kind: str, one: str, other: str) -> bool:
    """What is not installed in one environment may be in another; everything else fails in both."""
    return not kind.startswith(_OF_ENVIRONMENT) or activation_of(one).strip() == activation_of(other).strip()


def words_and_values(command: str) -> list[tuple[str, str | None]]:
    """`--lr 0.1`, `--lr=0.1` and `lr=0.1` with their values, as written; other words without."""
    command = command[len(activation_of(command)) :]
    try:
        words = shlex.split(command) if len(command) <= _LONGEST_READ else command.split()
    except ValueError:
        words = command.split()
    found: list[tuple[str, str | None]] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name:
            found.append((name, value))
        elif found and found[-1][0].startswith("-") and found[-1][1] is None and not _is_option(word):
            found[-1] = (found[-1][0], word)
        else:
            found.append((word, None))
    return found


def _is_option(word: str) -> bool:
    return word.startswith("-") and not isinstance(_number(word), float)


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def are_near(one: Params, other: Params) -> bool:
    """The same region: equal in words, and in numbers within a factor of two."""
    return one.keys() == other.keys() and all(_is_near(one[name], other[name]) for name in one)


def _is_near(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if isinstance(one, float) and isinstance(other, float) and one * other > 0:
        return max(one / other, other / one) <= _FACTOR
    return False
