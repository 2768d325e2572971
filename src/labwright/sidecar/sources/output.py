"""Metrics in the output: JSON lines, the project's patterns and, where it is switched on, pairs of name and number."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from labwright.domain.metrics.direction import PRINTED_NAME, as_printed, direction_of
from labwright.sidecar.sources.lines import LONGEST, GrowingLines
from labwright.sidecar.sources.metric_file import Mark, MetricFile
from labwright.sidecar.sources.numbers import EPOCH, Numbers, numbers_in
from labwright.sidecar.sources.patterns import Patterns
from labwright.sidecar.sources.printed_steps import PrintedSteps, without_steps

_BLOCK = 4 << 20
_GLANCE = 64 << 10
_UNMARKED = 4 << 20  # output without metrics that a new monitor would read again
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)\b"
# `loss=0.2`, `loss:   0.2`, `loss 0.2`, `Loss (mean) is 0.2`, and `'loss': '0.2'`, as a Trainer prints
_PARTING = r"['\"]:\s*['\"]|['\")\]]?(?:\s*[=:]\s*|\s+(?:is\s+)?)"
_PAIR = rf"({PRINTED_NAME})({_PARTING})({_NUMBER})(?![\w.:]|[,-]\d)"
_ADDRESS = re.compile(r"\S*(?:://|@(?=\D))\S*")  # acc@1 is none
_CALL = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\([^()]*\)")  # Namespace(lr=0.1): an object as Python prints it
_OPEN_CALL = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\(.*")  # which goes on in the next line
_FIELD = re.compile(r"\s*[A-Za-z_]\w*=[^,=]*,\s*")  # a line of one that is printed field by field
_PLACES = frozenset({"localhost", "cuda", "gpu", "xpu", "npu", "hpu", "tpu"})  # a port or a device's number follows
_NO_TEXT = re.compile(r"[\x00-\x06\x10-\x1a\x1c-\x1f]")  # what terminals know is text: bells, bars, colours


def is_worth_a_look(path: str, options: Mapping[str, Any]) -> bool:
    """Whether the output of a command that has ended may hold metrics or a traceback."""
    try:
        with open(path, "rb") as file:
            head = file.read(_GLANCE + 1)
    except FileNotFoundError:
        return False
    if not head:
        return False
    parsed = options.get("key_value") or options.get("patterns")
    return bool(parsed) or len(head) > _GLANCE or b"{" in head or b"Traceback" in head


class OutputSource:
    def __init__(
        self,
        path: str,
        file: MetricFile,
        options: Mapping[str, Any],
        began: Mark,
        hear: Callable[[bytes], None],
        started: float,
    ) -> None:
        self._path = path
        self._file = file
        self._hear = hear
        self._started = started
        self._position, self._count = file.mark or began
        self._lines = GrowingLines(path, self._position)
        self._patterns = Patterns(options.get("patterns", ()), self._refuse_now)
        self._pair = re.compile(_PAIR, re.IGNORECASE) if options.get("key_value") else None
        self._steps = PrintedSteps(self._count - 2 if file.has(EPOCH) else -1)  # the last step may still go on

    def look(self, *, last: bool = False) -> bool:
        """Answers whether there is more to read."""
        if self._file.is_behind or not (last or self._has_grown()):
            return False
        before, now = self._position, time.time()
        for line, end in self._lines.read(_BLOCK, last=last):
            self._position = end
            if line is None:
                self._refuse("(a line)", f"it is longer than {LONGEST} bytes", now)
            else:
                self._take(line, now)
        if self._position - (self._file.mark or (0, 0))[0] > _UNMARKED:
            self._file.keep(self._mark)
        return self._position > before or self._has_grown()

    @property
    def read_to(self) -> int:
        return self._lines.read_to

    def pass_over(self, end: int) -> None:
        self._lines.jump(end)
        self._position = end
        self._refuse("(output)", "log_cap_mb left a part of it out before it was read", time.time())

    @property
    def _mark(self) -> Mark:
        return self._position, self._count

    def _has_grown(self) -> bool:
        try:
            return os.path.getsize(self._path) > self._lines.read_to
        except FileNotFoundError:
            return False

    def _take(self, line: bytes, now: float) -> None:
        if b"\x1b" in line:
            line = _ESCAPES.sub(b"", line)
        line = line.rstrip()
        self._hear(line)
        line = line.lstrip()
        if line[:1] == b"{" and line[-1:] == b"}":
            self._add(self._from_json(line, now), now)
        elif self._patterns or self._pair:
            self._add(self._from_text(line.decode(errors="replace")), now)

    def _add(self, found: Numbers | None, now: float) -> None:
        if found is None:
            return
        if found.values:
            step = self._count if found.step is None else found.step
            self._count = max(self._count, step + 1)
            self._file.add(step, found.time or now, found.values, self._mark)
        for key, why in found.refused.items():  # after the points: their mark says that the line is done
            self._refuse(key, why, now)

    def _refuse(self, key: str, why: str, now: float) -> None:
        self._file.refuse(key, why, now, self._mark)

    def _refuse_now(self, key: str, why: str) -> None:
        self._refuse(key, why, time.time())

    def _from_json(self, line: bytes, now: float) -> Numbers | None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # a brace alone does not make it JSON: Python prints a dict so, too
            return self._from_text(line.decode(errors="replace"))
        return numbers_in(record, self._started, now, has_epochs=self._file.has(EPOCH))

    def _from_text(self, text: str) -> Numbers | None:
        """Patterns first, each with its named groups; pairs only where none fits."""
        named = self._patterns.numbers_in(text)
        if named or not self._pair:
            return self._numbers(named, meant=bool(named))
        text = _without_settings(text[:4096])
        pairs = _pairs(self._pair, without_steps(text))
        if not pairs:
            return None
        progress = self._steps.progress_in(text)
        return self._numbers({**pairs, **progress.said}, inside_epoch=progress.is_inside_epoch)

    def _numbers(self, texts: dict[str, str], *, meant: bool = False, inside_epoch: bool = False) -> Numbers | None:
        values = {key: _parse(value) for key, value in texts.items()}
        has_epochs = inside_epoch or self._file.has(EPOCH)
        return numbers_in(values, self._started, time.time(), meant=meant, has_epochs=has_epochs)


def _without_settings(text: str) -> str:
    """Nor what else merely looks like metrics: addresses, binary."""
    if _FIELD.fullmatch(text) or _NO_TEXT.search(text):
        return ""
    text, found = _ADDRESS.sub(" ", text), 1
    while found:
        text, found = _CALL.subn(" ", text)  # the innermost first
    return _OPEN_CALL.sub(" ", text)


def _pairs(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    matches = pattern.findall(text)
    return {as_printed(key): value for key, parting, value in matches if _is_pair(key, parting, value)}


def _is_pair(key: str, parting: str, value: str) -> bool:
    """With nothing but a space between, any word before a number would be one: only what metrics are called."""
    if "=" in parting or ":" in parting:
        return not _is_place(key, parting, value)
    return direction_of(key) is not None


def _is_place(key: str, parting: str, value: str) -> bool:
    """`train.py:42`, `localhost:8080`, `cuda:0`."""
    return parting == ":" and value.isdigit() and ("." in key or key.lower() in _PLACES)


def _parse(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            value: int | float = kind(text)
        except ValueError:
            continue
        return value
    return text
