"""A disk on which the run will soon fail to write."""

from __future__ import annotations

from labwright.sidecar.rules.seen import Alarm, Tick

_GB = 1 << 30
_FREE_GB = 5.0


class DiskNearlyFull:
    """`free_gb` counts as it is set; unset it is 5 GB, but on a small disk two percent of it."""

    def __init__(self, free_gb: float | None = None) -> None:
        self._free_gb = free_gb
        self._said = False

    def feed(self, tick: Tick) -> Alarm | None:
        limit = min(_FREE_GB * _GB, tick.disk_total / 50) if self._free_gb is None else self._free_gb * _GB
        if tick.disk_free > 2 * limit:
            self._said = False
        if self._said or tick.disk_free > limit:
            return None
        self._said = True
        return Alarm("disk_nearly_full", f"Only {tick.disk_free / _GB:.2f} GB are free on the disk.", "", "critical")
