"""A run's parameters once its command is another: what the old command showed of them must follow the new one.

Else a rerun with `--lr 9` would count for the configuration with `--lr 0.2`. What neither command shows was said of the
run from elsewhere, and stays.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

_NOT_PART = ("seed",)
_PLACE = r"""(?:'[^'\n]*activate'|"[^"\n]*activate"|(?:'[^'\n]*'|"[^"\n]*"|[^\s'"&;])*activate)"""
_ACTIVATES = re.compile(
    rf"(?:\s*(?:(?:source|\.)\s+{_PLACE}|(?:conda|mamba|micromamba)\s+activate\s+\S+?)\s*(?:&&|;|\n))+"
)
_LONGEST_READ = 20_000  # characters; beyond it the shell's rules for words would take minutes
_OF_ENVIRONMENT = ("ModuleNotFoundError", "ImportError")
_GONE = object()
Params = Mapping[str, Any]


def params_after_change(command: str, params: Mapping[str, Any], before: str) -> dict[str, Any]:
    """Of a run of `command`, which had `params` while its command was `before`."""
    found = {name: _value_in(command, name, value, before) for name, value in params.items()}
    return {name: value for name, value in found.items() if value is not _GONE}


def _value_in(command: str, name: str, value: Any, before: str) -> Any:
    was, given = _option(before, name), _option(command, name)
    if was != given:
        return _GONE if given is None else _read(given)
    word = (as_text(value), None)  # without a name, as in `train.py 0.2`
    return _GONE if word in words_and_values(before) and word not in words_and_values(command) else value


def _option(command: str, name: str) -> str | None:
    """As written; of a switch, such as `--amp`, nothing."""
    found = {_plain(word): value or "" for word, value in words_and_values(command) if value or word.startswith("-")}
    return found.get(_plain(name))


def _plain(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _read(text: str) -> Any:
    if not text:
        return True
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if type(value) in (int, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


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
