"""Read metrics from the output: JSON lines, the project's patterns and, if enabled, pairs of name and number."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from labwright.domain.metrics.direction import PRINTED_NAME, as_printed, direction_of
from labwright.sidecar.sources.lines import EPOCH, LONGEST, GrowingLines, Numbers, numbers_in
from labwright.sidecar.sources.metric_file import Mark, MetricFile

_BLOCK = 4 << 20
_GLANCE = 64 << 10
_UNMARKED = 4 << 20  # bytes without metrics that a new monitor may read again
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)\b"
# `loss=0.2`, `loss:   0.2`, `loss 0.2`, `Loss (mean) is 0.2`, and `'loss': '0.2'`, as a Trainer prints
_SEPARATOR = r"['\"]:\s*['\"]|['\")\]]?(?:\s*[=:]\s*|\s+(?:is\s+)?)"
_PAIR = rf"({PRINTED_NAME})({_SEPARATOR})({_NUMBER})(?![\w.:]|[,-]\d)"
_ADDRESS = re.compile(r"\S*(?:://|@(?=\D))\S*")  # `acc@1` is not an address
_CALL = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\([^()]*\)")  # Namespace(lr=0.1): an object printed by Python
_OPEN_CALL = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\(.*")  # continues in the next line
_FIELD = re.compile(r"\s*[A-Za-z_]\w*=[^,=]*,\s*")  # a line of an object that is printed field by field
_PLACES = frozenset({"localhost", "cuda", "gpu", "xpu", "npu", "hpu", "tpu"})  # a port or device number follows
_NO_TEXT = re.compile(r"[\x00-\x06\x10-\x1a\x1c-\x1f]")  # control characters that terminals do not use
_LONGEST_LINE = 4096
_PATIENCE_SECONDS = 1.0  # of processor time, so that a busy machine does not count
_BEFORE_NUMBER = r"['\"]?[\s:=#\[(]+"
_TOTAL = r"(?P<total>\s*/\s*\d+)?"
_STEP = re.compile(
    rf"(?<![\w./?&@-])(?<!best )(?P<name>global_step|step|iteration|iter|epoch)"
    rf"{_BEFORE_NUMBER}(?P<number>\d+)(?![\w%]|[.,:-]\d){_TOTAL}[\])]?(?:\s*[:-](?=\s))?",
    re.IGNORECASE,
)
_OF_MANY = r"(?:^|[^\w\s:=.(%-])\s*\d+\s*/\s*\d+(?![\d/])"  # `[640/60000`, `| 200/ 2983 batches`; not `acc: 95/100`
_PLACE = re.compile(rf"{_OF_MANY}|\bbatch{_BEFORE_NUMBER}\d", re.IGNORECASE)


def may_hold_metrics(path: str, options: Mapping[str, Any]) -> bool:
    """Return whether the output of an ended command may hold metrics or a traceback."""
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
        start_mark: Mark,
        see_line: Callable[[bytes], None],
        started: float,
    ) -> None:
        self._path = path
        self._file = file
        self._see_line = see_line
        self._started = started
        self._position, self._count = file.mark or start_mark
        self._lines = GrowingLines(path, self._position)
        self._patterns = Patterns(options.get("patterns", ()), self._refuse_now)
        self._pair = re.compile(_PAIR, re.IGNORECASE) if options.get("key_value") else None
        self._steps = PrintedSteps(self._count - 2 if file.has(EPOCH) else -1)  # the last step may still continue

    def look(self, *, last: bool = False) -> bool:
        """Read new lines. Return whether there is more to read."""
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

    def skip_to(self, end: int) -> None:
        self._lines.jump(end)
        self._position = end
        self._refuse("(output)", "log_cap_mb dropped a part of it before it was read", time.time())

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
        self._see_line(line)
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
        for key, why in found.refused.items():  # after the points, whose mark completes the line
            self._refuse(key, why, now)

    def _refuse(self, key: str, why: str, now: float) -> None:
        self._file.refuse(key, why, now, self._mark)

    def _refuse_now(self, key: str, why: str) -> None:
        self._refuse(key, why, time.time())

    def _from_json(self, line: bytes, now: float) -> Numbers | None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # Python prints a dict with braces too
            return self._from_text(line.decode(errors="replace"))
        return numbers_in(record, self._started, now, has_epochs=self._file.has(EPOCH))

    def _from_text(self, text: str) -> Numbers | None:
        """Search for patterns first. Search for pairs only if none fits."""
        named = self._patterns.numbers_in(text)
        if named or not self._pair:
            return self._numbers(named, meant=bool(named))
        text = _without_settings(text[:4096])
        matches = self._pair.findall(without_steps(text))
        pairs = {as_printed(key): value for key, separator, value in matches if _is_pair(key, separator, value)}
        if not pairs:
            return None
        progress = self._steps.progress_in(text)
        return self._numbers({**pairs, **progress.steps}, inside_epoch=progress.is_inside_epoch)

    def _numbers(self, texts: dict[str, str], *, meant: bool = False, inside_epoch: bool = False) -> Numbers | None:
        values = {key: _parse(value) for key, value in texts.items()}
        has_epochs = inside_epoch or self._file.has(EPOCH)
        return numbers_in(values, self._started, time.time(), meant=meant, has_epochs=has_epochs)


def _without_settings(text: str) -> str:
    """Return the text without printed objects, addresses and binary data, which look like metrics."""
    if _FIELD.fullmatch(text) or _NO_TEXT.search(text):
        return ""
    text, found = _ADDRESS.sub(" ", text), 1
    while found:
        text, found = _CALL.subn(" ", text)  # the innermost first
    return _OPEN_CALL.sub(" ", text)


def _is_pair(key: str, separator: str, value: str) -> bool:
    """Return whether this is a metric. With only a space between, the word must be a known name of a metric."""
    if "=" in separator or ":" in separator:
        # Not `train.py:42`, `localhost:8080` or `cuda:0`.
        return not (separator == ":" and value.isdigit() and ("." in key or key.lower() in _PLACES))
    return direction_of(key) is not None


def _parse(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            value: int | float = kind(text)
        except ValueError:
            continue
        return value
    return text


class _TooSlow(Exception):
    """The pattern took too long for a line."""


class Patterns:
    """The project's own patterns. A slow search is interrupted by a signal, so this works in the main thread only."""

    def __init__(self, texts: Iterable[str], refuse: Callable[[str, str], None]) -> None:
        self._patterns = [re.compile(text) for text in texts]
        self._refuse = refuse
        if self._patterns:
            signal.signal(signal.SIGVTALRM, _interrupt)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def numbers_in(self, line: str) -> dict[str, str]:
        """Return the texts of named groups. A pattern that takes too long is not used again."""
        found: dict[str, str] = {}
        for pattern in list(self._patterns):
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, _PATIENCE_SECONDS)
                try:
                    match = pattern.search(line[:_LONGEST_LINE])
                finally:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            except _TooSlow:
                self._patterns.remove(pattern)
                self._refuse("(a pattern)", f"{pattern.pattern[:100]!r} took too long for a line; it is not used again")
            else:
                found |= {
                    key: value for key, value in (match.groupdict() if match else {}).items() if value is not None
                }
        return found


def _interrupt(*_signal: object) -> None:
    raise _TooSlow


class PrintedProgress(NamedTuple):
    steps: dict[str, str]  # by name
    is_inside_epoch: bool  # one of many lines of its epoch, so the epoch alone is not its step


def without_steps(text: str) -> str:
    return _STEP.sub(" | ", text)  # not a space: the text before and after is not one name


class PrintedSteps:
    """Steps in the lines of one output: `Epoch 1/3`, `iter 50:`, `Step [100/600]`.

    Only several lines together show whether `Step 100` in `Epoch 2` counts on or restarts in each epoch.
    """

    def __init__(self, reached: int) -> None:
        self._epoch: str | None = None
        self._highest = reached
        self._restarts = False

    def progress_in(self, text: str) -> PrintedProgress:
        """Return the steps in a line with metrics. Do not give other lines, such as `Loaded epoch 3`."""
        found: dict[str, re.Match[str]] = {}
        for match in _STEP.finditer(text):
            found.setdefault(match["name"].lower(), match)
        inside = False
        if "epoch" in found:
            inner = self._inner_steps(found)
            inside = bool(inner) or _PLACE.search(without_steps(text)) is not None
            found = {name: match for name, match in found.items() if name not in inner}
        return PrintedProgress({name: match["number"] for name, match in found.items()}, inside)

    def _inner_steps(self, found: dict[str, re.Match[str]]) -> list[str]:
        """Return the steps that restart in each epoch: `Step [100/600]`, and those that were as high before."""
        names = [name for name in found if name not in ("epoch", "global_step")]
        for name in names:
            epoch, step = found["epoch"]["number"], int(found[name]["number"])
            if epoch != self._epoch and step <= self._highest:
                self._restarts = True
            self._epoch, self._highest = epoch, max(self._highest, step)
        return [name for name in names if found[name]["total"] or self._restarts]
