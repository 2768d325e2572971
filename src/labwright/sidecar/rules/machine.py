"""A run that says nothing any more: no output and no metric."""

from __future__ import annotations

import re

from labwright.sidecar.rules.inputs import Alarm, Disk, MetricPoint, OutputLine, Tick


class Stall:
    def __init__(self, minutes: float) -> None:
        self._seconds = minutes * 60
        self._said = False

    def feed(self, tick: Tick) -> Alarm | None:
        stalled = tick.quiet_seconds >= self._seconds
        new, self._said = stalled and not self._said, stalled
        if not new:
            return None
        return Alarm("stall", f"No output and no metric for {self._seconds / 60:g} minutes.")


_MB, _GB = 1 << 20, 1 << 30
_FREE_GB = 5.0


class DiskNearlyFull:
    """`free_gb` counts as it is set; unset it is 5 GB, but on a small disk two percent of it."""

    def __init__(self, free_gb: float | None = None) -> None:
        self._free_gb = free_gb
        self._said = False

    def feed(self, tick: Tick) -> Alarm | None:
        if all(disk.free > 2 * self._limit(disk) for disk in tick.disks):
            self._said = False
        full = [disk for disk in tick.disks if disk.free <= self._limit(disk)]
        if self._said or not full:
            return None
        self._said = True
        fullest = min(full, key=lambda disk: disk.free)
        words = f"Only {_size(fullest.free)} are free on the disk of {fullest.folder}."
        return Alarm("disk_nearly_full", words, "", "critical")

    def _limit(self, disk: Disk) -> float:
        return min(_FREE_GB * _GB, disk.total / 50) if self._free_gb is None else self._free_gb * _GB


def _size(count: int) -> str:
    return f"{count / _GB:.2f} GB" if count >= _GB / 10 else f"{count / _MB:.1f} MB"


_KEY = re.compile(r"system/gpu(\d+)/utilization$")
_IDLE_PERCENT = 3.0


class GpuIdle:
    def __init__(self, minutes: float) -> None:
        self._seconds = minutes * 60
        self._idle_since: dict[str, float] = {}
        self._said: set[str] = set()

    def feed(self, point: MetricPoint) -> Alarm | None:
        match = _KEY.match(point.key)
        if match is None:
            return None
        if point.value > _IDLE_PERCENT:
            self._idle_since.pop(point.key, None)
            self._said.discard(point.key)
            return None
        since = self._idle_since.setdefault(point.key, point.time)
        if point.key in self._said or point.time - since < self._seconds:
            return None
        self._said.add(point.key)
        return Alarm("gpu_idle", f"GPU {match[1]} has been idle for {self._seconds / 60:g} minutes.", point.key)


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

    def feed(self, line: OutputLine) -> Alarm | None:
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
