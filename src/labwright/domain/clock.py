"""Times as text: RFC 3339, UTC, milliseconds. They sort as text."""

from __future__ import annotations

import time
from datetime import datetime

_SLACK = 0.01  # of a millisecond: floats are not exact enough, and a parsed time must be written back unchanged


def now() -> str:
    return rfc3339(time.time())


def rfc3339(seconds: float) -> str:
    milliseconds = int(seconds * 1000 + _SLACK)
    base = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return f"{base}.{milliseconds % 1000:03d}Z"


def epoch_seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def seconds_apart(moment: float) -> float:
    """Return the distance to now in either direction. A future moment means that the clock was set back."""
    return abs(time.time() - moment)
