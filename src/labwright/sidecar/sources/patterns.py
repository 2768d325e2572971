"""The project's own patterns, looked for in lines of output. They are people's: one may take years for an odd line."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable

_LONGEST_LINE = 4096
_PATIENCE_SECONDS = 1.0  # of processor time, so that a busy machine is not held against a pattern


class _TooSlow(Exception):
    """The pattern has taken too long for a line."""


class Patterns:
    """In the main thread alone: a search is broken off by a signal, which `re` looks out for."""

    def __init__(self, texts: Iterable[str], refuse: Callable[[str, str], None]) -> None:
        self._patterns = [re.compile(text) for text in texts]
        self._refuse = refuse
        if self._patterns:
            signal.signal(signal.SIGVTALRM, _break_off)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def numbers_in(self, line: str) -> dict[str, str]:
        """By the names of their groups, as texts. A pattern that takes too long is not looked for again."""
        found: dict[str, str] = {}
        for pattern in list(self._patterns):
            try:
                match = _search(pattern, line[:_LONGEST_LINE])
            except _TooSlow:
                self._patterns.remove(pattern)
                self._refuse("(a pattern)", f"{pattern.pattern[:100]!r} took too long for a line; it is not used again")
            else:
                found |= {
                    key: value for key, value in (match.groupdict() if match else {}).items() if value is not None
                }
        return found


def _search(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    signal.setitimer(signal.ITIMER_VIRTUAL, _PATIENCE_SECONDS)
    try:
        return pattern.search(text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def _break_off(*_signal: object) -> None:
    raise _TooSlow
