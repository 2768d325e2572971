"""All sources of metrics of one run, and the source that samples the machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from labwright.domain.gpu import Gpu
from labwright.paths import RunPaths
from labwright.sidecar.record import RunJournal
from labwright.sidecar.sources.metric_file import MetricFile
from labwright.sidecar.sources.output import OutputSource, may_hold_metrics
from labwright.sidecar.sources.start import Start, declared_files
from labwright.sidecar.sources.workdir_files import WorkdirFiles

_SYSTEM_SECONDS = 5.0
_COUNT_SECONDS = 5.0
_FIRST_SECONDS = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB, _GB = 1 << 20, 1 << 30


class RunMetrics:
    def __init__(
        self,
        paths: RunPaths,
        spec: dict[str, Any],
        record: RunJournal,
        start: Start,
        tree: Callable[[], set[int]],
        see_line: Callable[[bytes], None],
    ) -> None:
        attempt: int = spec["run"]["attempt"]
        options = spec["sidecar"].get("metrics", {})
        self._record = record
        self._count_at = 0.0
        self._output_file = MetricFile(paths.metrics, "output", attempt)
        self._system_file = MetricFile(paths.metrics, "system", attempt)
        start_mark = (start.sizes.get(os.path.realpath(paths.output), (0, 0))[1], 0)
        self._output = OutputSource(paths.output, self._output_file, options, start_mark, see_line, start.time)
        self._files = WorkdirFiles(paths, spec, start, tree)
        seconds = options.get("system_seconds", _SYSTEM_SECONDS)
        self._system = SystemSource(self._system_file, start.time, seconds, spec["sidecar"]["workdir"], tree)

    def look(self, *, last: bool = False) -> bool:
        """Read from all sources. Return whether there is more to read."""
        more = self._output.look(last=last)
        self._files.look(last=last)
        self._system.look()
        if last or time.monotonic() >= self._count_at:
            self._count_at = time.monotonic() + _COUNT_SECONDS
            for file in self._all_files():
                file.write_refused_counts(time.time())
        self._flush()
        return more

    @property
    def output_read_to(self) -> int:
        return self._output.read_to

    def skip_output(self, end: int) -> None:
        """Skip output before `end`, which is about to be dropped. Record that first, in case of a kill."""
        self._output.skip_to(end)
        self._flush()

    def add_cards(self, cards: list[Gpu]) -> None:
        self._system.add_cards(cards)
        self._flush()

    @property
    def is_behind(self) -> bool:
        """Whether something could not be written yet because the disk is full."""
        return any(file.is_behind for file in self._all_files())

    def _all_files(self) -> list[MetricFile]:
        return [self._output_file, self._system_file, *self._files.files()]

    def _flush(self) -> None:
        written = [file.flush() for file in self._all_files()]
        if any(written):
            self._record.wake_server("metrics")


def has_something_to_take(paths: RunPaths, spec: dict[str, Any]) -> bool:
    """Return whether a command that ended before its monitor started left something to read."""
    logged = os.path.isdir(paths.metrics) and bool(os.listdir(paths.metrics))  # for the alert rules
    return logged or may_hold_metrics(paths.output, spec["sidecar"].get("metrics", {})) or bool(declared_files(spec))


class SystemSource:
    """Sample processor, memory, disk and cards of a run. Steps are seconds since its start.

    A process that starts and ends between two samples is not seen, as in `top`.
    """

    def __init__(
        self, file: MetricFile, started: float, seconds: float, workdir: str, tree: Callable[[], set[int]]
    ) -> None:
        self._file = file
        self._started = started
        self._seconds = seconds
        self._workdir = workdir
        self._tree = tree
        self._next = time.monotonic() + min(seconds, _FIRST_SECONDS)
        self._ticks: dict[tuple[int, str], int] = {}
        self._sampled_at = 0.0
        if seconds > 0:
            self._processor_and_memory()  # use before this moment is not counted

    def look(self) -> None:
        if self._seconds <= 0 or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._seconds
        numbers = self._processor_and_memory()
        try:
            disk = os.statvfs(self._workdir)
        except OSError:  # the run may have removed it
            self._add(numbers)
            return
        self._add({**numbers, "system/disk_free_gb": round(disk.f_bavail * disk.f_frsize / _GB, 3)})

    def add_cards(self, cards: list[Gpu]) -> None:
        numbers: dict[str, float] = {}
        for card in cards:
            numbers[f"system/gpu{card.index}/utilization"] = float(card.utilization)
            numbers[f"system/gpu{card.index}/memory_mb"] = float(card.memory_used_mb)
        self._add(numbers)

    def _add(self, numbers: dict[str, float]) -> None:
        if not self._file.is_behind:
            now = time.time()
            self._file.add(max(0, round(now - self._started)), now, numbers, (0, 0))

    def _processor_and_memory(self) -> dict[str, float]:
        used, private, shared = 0, 0, 0
        ticks: dict[tuple[int, str], int] = {}
        for pid in self._tree():
            sample = _sample(pid)
            if sample is None:
                continue
            started, spent, own_pages, shared_pages = sample
            ticks[pid, started] = spent
            used += spent - self._ticks.get((pid, started), 0)
            private += own_pages
            shared = max(shared, shared_pages)  # mostly the same pages in every process
        now = time.monotonic()
        span = now - self._sampled_at
        self._ticks, self._sampled_at = ticks, now
        if not ticks:
            return {}  # all have ended; a sample of zero would be wrong
        return {
            "system/cpu_percent": round(max(0, used) / _TICKS / span * 100, 1),
            "system/memory_mb": round((private + shared) * _PAGE / _MB, 1),
        }


def _sample(pid: int) -> tuple[str, int, int, int] | None:
    """Return start time, ticks spent, private pages and shared pages of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
        with open(f"/proc/{pid}/statm", "rb") as file:
            pages = file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    shared = int(pages[2])
    return fields[19].decode(), int(fields[11]) + int(fields[12]), int(pages[1]) - shared, shared
