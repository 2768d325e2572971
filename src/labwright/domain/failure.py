"""Failures as kinds: a traceback without what differs by chance, and whether a configuration lies where one failed."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Any

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line \d+, in (?P<function>\S+)')
_BY_CHANCE = re.compile(r"0x[0-9a-fA-F]+|\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
_PLACES = re.compile(r"(?:/[\w.+-]+)+")
_FACTOR = 2.0  # numbers that differ by less than this are neighbours
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


def are_near(one: Params, other: Params) -> bool:
    """The same region: equal in words, and in numbers within a factor of two."""
    return one.keys() == other.keys() and all(_is_near(one[name], other[name]) for name in one)


def _is_near(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if isinstance(one, float) and isinstance(other, float) and one * other > 0:
        return max(one / other, other / one) <= _FACTOR
    return False


def may_be_ended_by_slurm(facts: dict[str, Any]) -> bool:
    """A job that was told to end, or killed, has not ended for a reason that its sidecar could know."""
    killed = facts["reason"] == "exit_code" and facts["signal"] == signal.SIGKILL
    return killed or bool(facts["reason"] == "terminated")
