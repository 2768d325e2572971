"""What a run takes of the machine, from /proc: processor, memory, disk; and what its cards do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from labwright.domain.gpu import Gpu
from labwright.sidecar.sources.metric_file import MetricFile

_FIRST_SECONDS = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB, _GB = 1 << 20, 1 << 30


class SystemSource:
    """Steps are seconds since the start. Time off the processor between two samples is invisible, as in `top`."""

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
            self._processor_and_memory()  # what was used before is not counted

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
            born, spent, own, common = sample
            ticks[pid, born] = spent
            used += spent - self._ticks.get((pid, born), 0)
            private += own
            shared = max(shared, common)  # mostly the same pages in each process
        now = time.monotonic()
        span = now - self._sampled_at
        self._ticks, self._sampled_at = ticks, now
        if not ticks:
            return {}  # all have ended, while what they left is still read; that they took nothing would be untrue
        return {
            "system/cpu_percent": round(max(0, used) / _TICKS / span * 100, 1),
            "system/memory_mb": round((private + shared) * _PAGE / _MB, 1),
        }


def _sample(pid: int) -> tuple[str, int, int, int] | None:
    """When it began, ticks spent, private pages and shared pages."""
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
