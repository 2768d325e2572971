"""A run that says nothing any more: no output and no metric."""

from __future__ import annotations

from labwright.sidecar.rules.seen import Alarm, Tick


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
