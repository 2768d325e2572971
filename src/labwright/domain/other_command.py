"""A run's parameters once its command is another: what the old command showed of them must follow the new one.

Else a rerun with `--lr 9` would count for the configuration with `--lr 0.2`. What neither command shows was said of the
run from elsewhere, and stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from labwright.domain.command_template import as_text
from labwright.domain.failure import words_and_values

_GONE = object()


def params_in(command: str, params: Mapping[str, Any], before: str) -> dict[str, Any]:
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
