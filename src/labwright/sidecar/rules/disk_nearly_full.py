"""A disk on which the run will soon fail to write."""

from __future__ import annotations

from labwright.sidecar.rules.seen import Alarm, Tick

_GB = 1 << 30


class DiskNearlyFull:
    def __init__(self, free_gb: float) -> None:
        self._free = free_gb * _GB
        self._said = False

    def feed(self, tick: Tick) -> Alarm | None:
        limit = min(self._free, tick.disk_total / 50)  # on a small disk, two percent of it
        if tick.disk_free > 2 * limit:
            self._said = False
        if self._said or tick.disk_free > limit:
            return None
        self._said = True
        return Alarm("disk_nearly_full", f"Only {tick.disk_free / _GB:.2f} GB are free on the disk.", "", "critical")
