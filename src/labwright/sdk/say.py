"""A word to the person at the terminal. It may be lost; it never disturbs."""

from __future__ import annotations

import sys

_said: set[str] = set()
_REMEMBERED = 1000


def say(text: str) -> None:
    try:
        sys.stderr.write(f"labwright: {text}\n")
        sys.stderr.flush()
    except Exception:  # noqa: BLE001, S110 - stderr may be closed, replaced or gone; training goes on
        pass


def say_once(text: str) -> None:
    if text not in _said and len(_said) < _REMEMBERED:
        _said.add(text)
        say(text)
