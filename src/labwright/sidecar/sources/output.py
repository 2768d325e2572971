"""Metrics in the output: JSON lines, the project's patterns and, where it is switched on, pairs of name and number."""

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


_BEFORE_NUMBER = r"['\"]?[\s:=#\[(]+"
_TOTAL = r"(?P<total>\s*/\s*\d+)?"
_STEP = re.compile(
    rf"(?<![\w./?&@-])(?<!best )(?P<name>global_step|step|iteration|iter|epoch)"
    rf"{_BEFORE_NUMBER}(?P<number>\d+)(?![\w%]|[.,:-]\d){_TOTAL}[\])]?(?:\s*[:-](?=\s))?",
    re.IGNORECASE,
)
_OF_MANY = r"(?:^|[^\w\s:=.(%-])\s*\d+\s*/\s*\d+(?![\d/])"  # `[640/60000`, `| 200/ 2983 batches`; not `acc: 95/100`
_PLACE = re.compile(rf"{_OF_MANY}|\bbatch{_BEFORE_NUMBER}\d", re.IGNORECASE)


class PrintedProgress(NamedTuple):
    said: dict[str, str]  # by the names of steps
    is_inside_epoch: bool  # one of many lines of its epoch, so that the epoch tells it from no other


def without_steps(text: str) -> str:
    return _STEP.sub(" | ", text)  # no space alone: what stood before and after it is not one name


class PrintedSteps:
    """Of one output. Only its lines together tell whether `Epoch 2, Step 100` counts on or begins anew."""

    def __init__(self, reached: int) -> None:
        self._epoch: str | None = None
        self._highest = reached
        self._begin_anew = False

    def progress_in(self, text: str) -> PrintedProgress:
        """For lines with metrics alone: `Loaded the weights of epoch 3, step 500` says nothing of this run."""
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
        """Those of an epoch: `Step [100/600]`, and all that were as high in an epoch before."""
        names = [name for name in found if name not in ("epoch", "global_step")]
        for name in names:
            self._watch(found["epoch"]["number"], int(found[name]["number"]))
        return [name for name in names if found[name]["total"] or self._begin_anew]

    def _watch(self, epoch: str, step: int) -> None:
        if epoch != self._epoch and step <= self._highest:
            self._begin_anew = True
        self._epoch, self._highest = epoch, max(self._highest, step)
