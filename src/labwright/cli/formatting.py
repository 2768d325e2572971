"""Format and parse values: durations such as `3m 12s`, sizes such as `1.2 GB`, times such as `5m ago`."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from typing import Any

from labwright.domain.clock import epoch_seconds
from labwright.domain.errors import Invalid

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(d|h|m|s)")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_WIDE = ("W", "F")
_LONG, _VERY_LONG = 1e4, 1e7


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours}h"
    if hours:
        return f"{hours}h {minutes:02d}m"
    return f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def ago(timestamp: str, now: float | None = None) -> str:
    passed = (time.time() if now is None else now) - epoch_seconds(timestamp)
    if passed < 5:
        return "just now"
    minutes = passed / 60
    if minutes < 1:
        return f"{passed:.0f}s ago"
    if minutes < 60:
        return f"{minutes:.0f}m ago"
    if minutes < 60 * 24:
        return f"{minutes / 60:.0f}h ago"
    return f"{minutes / 60 / 24:.0f}d ago"


def clock_time(timestamp: str) -> str:
    """Return the local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(epoch_seconds(timestamp)))


def moment(timestamp: str | None) -> str:
    """Return the local time and how long ago that was."""
    return f"{clock_time(timestamp)}  ({ago(timestamp)})" if timestamp else ""


def size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.95 or (unit == "B" and count < 1000):
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def gigabytes(megabytes: float) -> str:
    return f"{megabytes / 1024:.1f} GB"


def number(value: object) -> str:
    """Format a float with four significant digits; whole parts of up to seven digits are kept."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if _LONG <= abs(value) < _VERY_LONG else f"{value:.4g}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def assignments(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={number(value)}" for name, value in values.items())


def parse_budget(gpu_hours: float | None, runs: int | None, wall_time: str | None) -> dict[str, Any]:
    """Return the budget as the API expects it, with the limits that were given."""
    wall = parse_duration(wall_time) if wall_time else None
    given = {"gpu_hours": gpu_hours, "runs": runs, "wall_seconds": wall}
    return {name: value for name, value in given.items() if value is not None}


def parse_duration(text: str) -> float:
    """Parse `2h`, `90m`, `1h30m`, `45s`, or plain seconds."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not text or _DURATION.sub("", text):
        raise Invalid(f"{text!r} is not a duration.", hint="Write it like 2h, 90m, 1h30m or 45s.")
    return sum(float(value) * _SECONDS[unit] for value, unit in _DURATION.findall(text))


def parse_pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Invalid(f"{option} {text!r} is not NAME=VALUE.", hint=f"Write it like {option} NAME=VALUE.")
    return name, value


def parse_value(text: str) -> Any:
    """Return a number, true, false or null if the text is one; otherwise the text."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        return text
    return text if isinstance(value, dict | list | str) else value


def _refuse(name: str) -> Any:
    raise ValueError(name)


def one_line(text: str) -> str:
    """Return the text without newlines and control characters."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))


def visible(text: str) -> str:
    """Replace characters that control the terminal, are invisible, or change the direction of text."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text.replace("\r\n", "\n"))


def width(text: str) -> int:
    """Return how many columns the text takes on a terminal."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def shorten(text: str, columns: int) -> str:
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for character in text:
        used += _columns(character)
        if used > columns - 1:
            break
        kept += character
    return f"{kept}…"
