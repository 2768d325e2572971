"""The first Python traceback in the output; its last line says what happened."""

from __future__ import annotations

from labwright.sidecar.rules.seen import Alarm, Line

HEADER = "Traceback (most recent call last):"
_LONGEST = 5000  # lines; a recursion is printed in fewer


class Traceback:
    def __init__(self) -> None:
        self._prefix: str | None = None  # what stands before each line, such as `[rank0]: `
        self._lines = 0
        self._said = False

    @property
    def is_reading(self) -> bool:
        return self._prefix is not None

    def feed(self, line: Line) -> Alarm | None:
        if self._said:
            return None
        if self._prefix is None:
            before, header, _ = line.text.partition(HEADER)
            self._prefix = before if header else None
            return None
        self._lines += 1
        text = line.text.removeprefix(self._prefix)
        if (not text or text[0].isspace()) and self._lines < _LONGEST:
            return None
        self._said, self._prefix = True, None
        return Alarm("traceback", text.strip()[:500] or "A Python traceback.")
