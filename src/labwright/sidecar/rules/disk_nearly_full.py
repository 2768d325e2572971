"""A disk on which the run will soon fail to write."""

from __future__ import annotations

from labwright.sidecar.rules.seen import Alarm, Disk, Tick

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
