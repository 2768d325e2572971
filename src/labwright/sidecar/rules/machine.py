"""Rules about the run as a whole: no sign of life, a nearly full disk, an idle GPU, a traceback in the output."""

from __future__ import annotations

import re

from labwright.sidecar.rules.inputs import Alarm, Disk, MetricPoint, OutputLine, Tick

TRACEBACK_HEADER = "Traceback (most recent call last):"
_MB, _GB = 1 << 20, 1 << 30
_FREE_GB = 5.0
_UTILIZATION_KEY = re.compile(r"system/gpu(\d+)/utilization$")
_IDLE_PERCENT = 3.0
_LONGEST_TRACEBACK = 5000  # lines; a recursion error prints fewer


class Stall:
    """The run has printed and logged nothing for a while."""

    def __init__(self, minutes: float) -> None:
        self._seconds = minutes * 60
        self._reported = False

    def feed(self, tick: Tick) -> Alarm | None:
        stalled = tick.quiet_seconds >= self._seconds
        new, self._reported = stalled and not self._reported, stalled
        if not new:
            return None
        return Alarm("stall", f"No output and no metric for {self._seconds / 60:g} minutes.")


class DiskNearlyFull:
    """A disk of the run is nearly full. The default limit is 5 GB, or two percent of a small disk."""

    def __init__(self, free_gb: float | None = None) -> None:
        self._free_gb = free_gb
        self._reported = False

    def feed(self, tick: Tick) -> Alarm | None:
        if all(disk.free > 2 * self._limit(disk) for disk in tick.disks):
            self._reported = False
        full = [disk for disk in tick.disks if disk.free <= self._limit(disk)]
        if self._reported or not full:
            return None
        self._reported = True
        disk = min(full, key=lambda disk: disk.free)
        free = f"{disk.free / _GB:.2f} GB" if disk.free >= _GB / 10 else f"{disk.free / _MB:.1f} MB"
        return Alarm("disk_nearly_full", f"Only {free} are free on the disk of {disk.folder}.", "", "critical")

    def _limit(self, disk: Disk) -> float:
        return min(_FREE_GB * _GB, disk.total / 50) if self._free_gb is None else self._free_gb * _GB


class GpuIdle:
    """A leased card is idle while the run holds it."""

    def __init__(self, minutes: float) -> None:
        self._seconds = minutes * 60
        self._idle_since: dict[str, float] = {}
        self._reported: set[str] = set()

    def feed(self, point: MetricPoint) -> Alarm | None:
        match = _UTILIZATION_KEY.match(point.key)
        if match is None:
            return None
        if point.value > _IDLE_PERCENT:
            self._idle_since.pop(point.key, None)
            self._reported.discard(point.key)
            return None
        since = self._idle_since.setdefault(point.key, point.time)
        if point.key in self._reported or point.time - since < self._seconds:
            return None
        self._reported.add(point.key)
        return Alarm("gpu_idle", f"GPU {match[1]} has been idle for {self._seconds / 60:g} minutes.", point.key)


class Traceback:
    """The first Python traceback in the output. The alarm shows its last line."""

    def __init__(self) -> None:
        self._prefix: str | None = None  # the text before each line, such as `[rank0]: `
        self._lines = 0
        self._reported = False

    @property
    def is_reading(self) -> bool:
        return self._prefix is not None

    def feed(self, line: OutputLine) -> Alarm | None:
        if self._reported:
            return None
        if self._prefix is None:
            before, header, _ = line.text.partition(TRACEBACK_HEADER)
            self._prefix = before if header else None
            return None
        self._lines += 1
        text = line.text.removeprefix(self._prefix)
        if (not text or text[0].isspace()) and self._lines < _LONGEST_TRACEBACK:
            return None
        self._reported, self._prefix = True, None
        return Alarm("traceback", text.strip()[:500] or "A Python traceback.")
