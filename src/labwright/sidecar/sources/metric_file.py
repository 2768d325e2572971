"""A metric file in the run folder, as its only writer sees it. The server ingests it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from typing import Any

from labwright.files import passing_refusals

_LONGEST_LINE = 8 << 20
_MOST_REFUSED = 50
_MOST_KEYS = 10_000
_MAX_KEY_LENGTH = 300
_OTHERS = "(other keys)"
NOTES = "notes"  # the monitor's notes about files that it does not read
Mark = tuple[int, ...]  # position in the source, step for a point without one, checksum of the last bytes


class MetricFile:
    """A file whose lines each hold the mark of the source.

    A point and the position in its source are one line, and so one write. After a kill, the last whole line says where
    to resume, and half a line is cut off (the server reads whole lines only). Nothing is lost or doubled.
    """

    def __init__(self, folder: str, source: str, attempt: int, suffix: str = "", **header: Any) -> None:
        parts = [source, *([suffix] if suffix else []), *([f"attempt{attempt}"] if attempt > 1 else [])]
        self.path = f"{folder}/{'-'.join(parts)}.jsonl"
        self.header: dict[str, Any] = {"source": source, "attempt": attempt, "v": 1, **header}
        self.mark: Mark | None = None
        self.refused: set[str] = set()
        self._refused_again: dict[str, tuple[str, int]] = {}  # reason, and how often since it was written
        self._keys: set[str] = set()
        self._fd: int | None = None
        self._lines: list[bytes] = []  # to write next
        self._owed = b""  # bytes that a full disk refused
        self.is_behind = False  # something is owed: read no more until it is written
        if os.path.exists(self.path):
            self._resume()

    def add(self, step: int, time: float, numbers: Mapping[str, float], mark: Mark) -> None:
        fit = {key: value for key, value in numbers.items() if self._fits(key)}
        if fit:
            self._write({"s": step, "t": round(time, 6), "m": fit, "at": mark})
        for key in numbers.keys() - fit.keys() if len(fit) < len(numbers) else ():
            if len(key) > _MAX_KEY_LENGTH:
                self.refuse(key, "the key is too long", time, mark)
            else:
                self.refuse("(more keys)", f"a source may have {_MOST_KEYS}", time, mark)

    def has(self, key: str) -> bool:
        return key in self._keys

    def _fits(self, key: str) -> bool:
        if key in self._keys:
            return True
        if len(key) > _MAX_KEY_LENGTH or len(self._keys) >= _MOST_KEYS:
            return False
        self._keys.add(key)
        return True

    def refuse(self, key: str, why: str, time: float, mark: Mark) -> None:
        """Write the reason once per key, and count repetitions."""
        key = key[:_MAX_KEY_LENGTH]
        if key not in self.refused and len(self.refused) >= _MOST_REFUSED:
            key, why = _OTHERS, "refused as well"
        if key in self.refused:
            self._refused_again[key] = (why, self._refused_again.get(key, ("", 0))[1] + 1)
        else:
            self.refused.add(key)
            self._write({"t": round(time, 6), "refused": {"key": key, "why": why}, "at": mark})

    def write_refused_counts(self, time: float) -> None:
        for key, (why, count) in self._refused_again.items():
            facts = {"key": key, "why": why, "count": count}
            self._write({"t": round(time, 6), "refused": facts, "at": self.mark})
        self._refused_again.clear()

    def keep(self, mark: Mark) -> None:
        """Write only the position in the source."""
        self._write({"at": mark})

    def _write(self, entry: dict[str, Any]) -> None:
        self.mark = entry["at"]
        self._lines.append(json.dumps(entry).encode() + b"\n")

    def flush(self) -> bool:
        """Write the collected lines. Return whether anything was written."""
        if not self._lines and not self._owed:
            return False
        fd = self._open()
        self._owed += b"".join(self._lines)
        self._lines.clear()
        written = 0
        with passing_refusals():
            written = os.write(fd, self._owed)
        self._owed = self._owed[written:]
        self.is_behind = bool(self._owed)
        return written > 0

    def _open(self) -> int:
        """Raise BlockingIOError if another process writes the file: then this monitor is one too many."""
        if self._fd is None:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._fd).st_size == 0:
                self._lines.insert(0, self._header_line)
        return self._fd

    @property
    def _header_line(self) -> bytes:
        return json.dumps(self.header).encode() + b"\n"

    def _resume(self) -> None:
        fd = self._open()
        size = os.fstat(fd).st_size
        start = max(0, size - _LONGEST_LINE)
        block = os.pread(fd, size - start, start)
        whole = block.rfind(b"\n") + 1
        if whole < len(block):
            os.ftruncate(fd, start + whole)
        self._lines = [] if start + whole else [self._header_line]
        for line in block[:whole].splitlines():
            with contextlib.suppress(ValueError):  # the first line may be cut off
                self._recall(json.loads(line))

    def _recall(self, entry: dict[str, Any]) -> None:
        if "source" in entry:
            self.header = entry
        if "refused" in entry:
            self.refused.add(entry["refused"]["key"])
        self._keys.update(entry.get("m", ()))
        if "at" in entry:
            self.mark = tuple(entry["at"])


def is_of_the_run(name: str) -> bool:
    """Return whether growth of this file means that the run is alive. Samples and notes grow also while it hangs."""
    return not name.startswith(("system", f"file-{NOTES}"))


def header_of(path: str) -> dict[str, Any]:
    """Return the header of a metric file, or nothing if it is not complete yet."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.readline(65536))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
