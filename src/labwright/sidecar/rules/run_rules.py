"""Look after one run with the rules: read its metric files, its quietness and its disk, and record alarms."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

from labwright.paths import RunPaths
from labwright.sidecar.record import RunRecord
from labwright.sidecar.rules.book import RuleBook
from labwright.sidecar.rules.seen import Alarm, Disk, Tick
from labwright.sidecar.rules.tail import MetricTail
from labwright.sidecar.sources.metric_file import is_of_the_run

_TICK_SECONDS = 5.0


class RunRules:
    def __init__(self, paths: RunPaths, spec: dict[str, Any], record: RunRecord, started: float) -> None:
        self._paths = paths
        self._record = record
        self._started = started
        self._workdir = spec["sidecar"]["workdir"]
        options = spec["sidecar"].get("alerts", {})
        watched = [rule["metric"] for rule in options.get("project", ())]
        self._tail = MetricTail(paths.metrics, spec["run"]["attempt"], watched)
        self._book = RuleBook(options, self._told(), self._say)
        self._tick_at = 0.0

    def _told(self) -> dict[tuple[str, str], float]:
        """Since the attempt began; what an earlier one was told of may happen again."""
        alerts = [event for event in self._record.events() if event["event"] == "alert"]
        return {(a["rule"], a.get("key", "")): a["time"] for a in alerts if a["time"] >= self._started}

    def see_line(self, line: bytes) -> None:
        self._book.see_line(line, time.time())

    def look(self) -> bool:
        """Answers whether there was anything new: then there may be more."""
        before = self._tail.bytes_seen
        for point in self._tail.new_points():
            self._book.see_point(point)
        if time.monotonic() >= self._tick_at:
            self._tick_at = time.monotonic() + _TICK_SECONDS
            self._book.see_tick(self._tick())
        return self._tail.bytes_seen > before

    def _tick(self) -> Tick:
        now = time.time()
        folders = [folder for folder in (self._paths.dir, self._workdir) if os.path.isdir(folder)]
        return Tick(now, now - self._last_sign_of_life(), tuple(map(_disk_of, folders)))

    def _last_sign_of_life(self) -> float:
        """From the files' own times, so that it survives this process."""
        files = [f"{self._paths.metrics}/{name}" for name in self._tail.names() if is_of_the_run(name)]
        newest = self._started
        for path in [self._paths.output, *files]:
            with contextlib.suppress(FileNotFoundError):
                newest = max(newest, os.path.getmtime(path))
        return newest

    def _say(self, alarm: Alarm) -> None:
        self._record.event(
            "alert",
            rule=alarm.rule,
            key=alarm.key,
            message=alarm.message,
            severity=alarm.severity,
            choices=list(alarm.choices),
        )


def _disk_of(folder: str) -> Disk:
    """By the folder's real name: the run's own is held open, and known here as a number."""
    disk = os.statvfs(folder)
    return Disk(os.path.realpath(folder), disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)
