"""Group failures: a traceback without random details, and whether two configurations are close to each other."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Any

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line \d+, in (?P<function>\S+)')
_RANDOM = re.compile(r"0x[0-9a-fA-F]+|\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
_PATHS = re.compile(r"(?:/[\w.+-]+)+")
_FACTOR = 2.0  # numbers within this factor count as close
Params = Mapping[str, Any]


def signature(traceback: str) -> str:
    """Return the error and where it was raised. Runs that fail for the same reason get the same text."""
    lines = traceback.strip().splitlines()
    frames = [_frame(found) for line in lines if (found := _FRAME.match(line))]
    said = lines[-1].strip() if lines else ""
    said = _RANDOM.sub("#", _PATHS.sub("/…", said))
    return " < ".join([said, *reversed(frames[-3:])])[:500]


def _frame(found: re.Match[str]) -> str:
    return f"{found['file'].rsplit('/', 1)[-1]}:{found['function']}"


def are_near(one: Params, other: Params) -> bool:
    """Return whether two configurations have equal text values and numbers within a factor of two."""
    return one.keys() == other.keys() and all(_is_near(one[name], other[name]) for name in one)


def _is_near(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if isinstance(one, float) and isinstance(other, float) and one * other > 0:
        return max(one / other, other / one) <= _FACTOR
    return False


def may_be_ended_by_slurm(facts: dict[str, Any]) -> bool:
    """Return whether Slurm may have ended the job. Its sidecar cannot know why a job was terminated or killed."""
    killed = facts["reason"] == "exit_code" and facts["signal"] == signal.SIGKILL
    return killed or bool(facts["reason"] == "terminated")
