"""Sleeping until something happens: signals only wake the loop, and two of them leave a note."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
from collections.abc import Iterable

_SAME_WARNING_SECONDS = 90.0  # so long after ours may come Slurm's, which was asked for a minute later
_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeups:
    def __init__(self, warning_signal: int | None, warning_after_seconds: float | None = None) -> None:
        self.terminated = False  # by TERM: whoever runs this machine wants us gone
        self._warned = False  # by the signal that Slurm may send before that
        self._warning_signal = warning_signal
        self._warning_due = None if warning_after_seconds is None else time.monotonic() + warning_after_seconds
        self._warned_at = -math.inf  # by ourselves
        self._pipe = self._reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (*_SIGNALS, *([warning_signal] if warning_signal else [])):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number == signal.SIGTERM:
            self.terminated = True
        elif number == self._warning_signal:
            self._warned = True

    @property
    def warning_in(self) -> float | None:
        """Seconds until the job is to be warned; None where nobody has to."""
        return None if self._warning_due is None else max(0.0, self._warning_due - time.monotonic())

    def take_warning(self) -> int | None:
        """The signal that the job is to get now: its time has come, or somebody has sent it."""
        now = time.monotonic()
        was_sent, self._warned = self._warned, False
        if self._warning_due is not None and now >= self._warning_due:
            self._warning_due, self._warned_at = None, now
            return self._warning_signal
        return self._warning_signal if was_sent and now - self._warned_at > _SAME_WARNING_SECONDS else None

    def sleep(self, seconds: float, sources: Iterable[int] = ()) -> list[int]:
        """Until a signal, the time, or something to read in one of the sources: which of them have."""
        ready, _, _ = select.select([self._reader, *sources], [], [], max(0.0, seconds))
        if self._reader in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, 4096)
        return ready

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for fd in self._pipe:
            os.close(fd)
