"""Times as people and JSON see them: RFC 3339, UTC, milliseconds; they sort as text."""

from __future__ import annotations

import time
from datetime import datetime

_SLACK = 0.01  # of a millisecond, which a float of today cannot always hold: a time that was read is written the same


def now() -> str:
    return rfc3339(time.time())


def rfc3339(seconds: float) -> str:
    milliseconds = int(seconds * 1000 + _SLACK)
    base = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return f"{base}.{milliseconds % 1000:03d}Z"


def epoch_seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def seconds_apart(moment: float) -> float:
    """From now, either way. A moment to come is one from before the clock was set back: as good as long ago."""
    return abs(time.time() - moment)
