"""Ask Slurm for all jobs at once, from a thread of its own: at most once in so many seconds, whatever runs there are.

Less often while nothing changes or nobody answers. What is urgent, starts and ends, the run folders tell sooner.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from labwright.compute.slurm.commands import SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.states import JobRow, read_squeue, squeue_arguments

log = logging.getLogger(__name__)
_SLOWEST = 6  # times the shortest pause, while nothing changes
_SLOWEST_SILENT = 12  # likewise, while Slurm does not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One answer, and what was known when the question was asked: the answer may be older than news from files."""

    rows: tuple[JobRow, ...]
    asked_at: float
    had_started: Mapping[str, int]  # the attempt that was under way, by run


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    words: str


class SlurmWatch:
    def __init__(
        self, commands: SlurmCommands, query_seconds: float, tell: Callable[[Seen | Unanswered], None]
    ) -> None:
        self._commands = commands
        self._shortest = query_seconds
        self._tell = tell
        self._pause = query_seconds
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._started: Mapping[str, int] = {}
        self._each_task = False  # ask for a row each
        self._last: tuple[JobRow, ...] | None = None
        self._thread: threading.Thread | None = None

    def look(self, wanted: bool, started: Mapping[str, int]) -> None:
        """Whether there is anything to ask about, and which attempts have begun by now."""
        self._started = started
        if not wanted:
            self._wanted.clear()
            return
        self._wanted.set()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._loop, name="slurm-watch", daemon=True)
            self._thread.start()

    def soon(self) -> None:
        """Something was sent or ended: the next answer will differ."""
        self._pause = self._shortest

    def close(self) -> None:
        self._closing.set()
        self._wanted.set()

    def _loop(self) -> None:
        while not self._closing.is_set():
            self._wanted.wait()
            if self._closing.is_set():
                return
            asked = time.monotonic()
            self._ask()
            while time.monotonic() < asked + self._pause and not self._closing.wait(min(0.2, self._shortest)):
                pass

    def _ask(self) -> None:
        asked_at, started = time.time(), self._started
        try:
            rows = tuple(read_squeue(self._commands.call(*squeue_arguments(os.getuid(), each_task=self._each_task))))
        except (SlurmSilent, SlurmRefused) as error:
            self._no_answer(error.message)
            return
        except Exception as error:  # without this thread no end of a job is seen
            log.exception("what squeue said could not be understood")
            self._no_answer(f"what squeue said could not be understood: {error!r}")
            return
        unchanged = rows == self._last
        self._pause = min(self._pause * 1.5, self._shortest * _SLOWEST) if unchanged else self._shortest
        self._last = rows
        held = any(row.tasks is not None and row.is_held for row in rows)
        self._each_task = held and (self._each_task or any(row.is_mixed for row in rows))
        self._tell(Seen(rows=rows, asked_at=asked_at, had_started=started))

    def _no_answer(self, words: str) -> None:
        self._pause = min(self._pause * 2, self._shortest * _SLOWEST_SILENT)
        self._tell(Unanswered(words=words))
