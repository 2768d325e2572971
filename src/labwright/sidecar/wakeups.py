"""Sleeping until something happens: signals only wake the loop, and two of them leave a note."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable

_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeups:
    def __init__(self, warning_signal: int | None) -> None:
        self.terminated = False  # by TERM: whoever runs this machine wants us gone
        self.warned: int | None = None  # by the signal that Slurm may send before that
        self._warning_signal = warning_signal
        self._pipe = self._reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (*_SIGNALS, *([warning_signal] if warning_signal else [])):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number == signal.SIGTERM:
            self.terminated = True
        elif number == self._warning_signal:
            self.warned = number

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
