"""Background work on items in the database: sweeps, plans, sessions, wild loops, notification channels.

A worker remembers nothing that matters: everything is in the database, so a restarted server finds the same work.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Collection, Iterable

from labwright.compute.lab import Lab
from labwright.domain.errors import LabwrightError
from labwright.domain.event import Event

log = logging.getLogger(__name__)
RETRIED = (LabwrightError, OSError, sqlite3.Error)  # a full disk, a locked database: the next try may succeed


class Worker:
    """Waits for committed events and deadlines, then advances the items they concern.

    A subclass defines `concerned`, `advance` and, where needed, `items_at_start`, `give_up` and `interrupt`.
    """

    name = "worker"  # of its thread
    thread_per_item = False  # else one thread advances all items, one after the other
    retry_seconds = 2.0
    gather_seconds = 0.0  # wait this long after an event, to handle events that come together at once
    close_seconds = 5.0

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.closing = False
        self._changed = threading.Condition()  # reentrant
        self._due: dict[str, float] = {}  # item -> when to advance it, by the monotonic clock
        self._backing_off: set[str] = set()  # items whose last try failed; events do not make them due sooner
        self._busy: dict[str, threading.Thread] = {}
        self._again: set[str] = set()  # busy items with new events: advanced again when their thread ends
        self._thread = threading.Thread(target=self._serve, name=self.name, daemon=True)
        lab.db.on_commit(self._hear)

    def concerned(self, events: list[Event]) -> Collection[str]:
        """Return the items that committed events concern. Called with the database locked: must not block."""
        raise NotImplementedError

    def items_at_start(self) -> Iterable[str]:
        return ()

    def advance(self, item: str) -> float | None:
        """Do what there is to do for one item now. Return the seconds until the next check, or None: after an event.

        Errors in `RETRIED` are tried again; any other goes to `give_up`.
        """
        raise NotImplementedError

    def has_work(self, item: str) -> bool:  # noqa: ARG002
        """Return whether an item needs a thread now. Called before one is started."""
        return True

    def give_up(self, item: str, error: Exception) -> None:
        """Record that an unexpected error stops the work on an item."""

    def interrupt(self, item: str) -> None:
        """React to an event, or to the server's end, while a thread advances the item."""

    def start(self) -> None:
        for item in self.items_at_start():
            self.wake(item)
        self._thread.start()

    def close(self) -> None:
        """Stop. Unfinished work stays in the database and continues at the next start."""
        with self._changed:
            self.closing = True
            self._changed.notify_all()
        self._thread.join(timeout=self.close_seconds)
        busy = list(self._busy.items())
        for item, _ in busy:
            self.interrupt(item)
        for _, thread in busy:
            thread.join(timeout=self.close_seconds)

    def wake(self, item: str, after: float = 0.0) -> None:
        """Advance an item in `after` seconds, or sooner if it is due sooner."""
        with self._changed:
            if item not in self._backing_off:
                at = time.monotonic() + after
                self._due[item] = min(at, self._due.get(item, at))
                self._changed.notify_all()

    def _hear(self, events: list[Event]) -> None:
        for item in self.concerned(events):
            self.wake(item)

    def _serve(self) -> None:
        while self._wait_until_due():
            time.sleep(self.gather_seconds)
            for item in self._take_due():
                if self.closing:
                    return
                if self.thread_per_item:
                    self._start_thread(item)
                else:
                    self._work_on(item)

    def _wait_until_due(self) -> bool:
        """Return False if the worker is closing."""
        with self._changed:
            while not self.closing:
                first = min(self._due.values(), default=None)
                if first is not None and first <= time.monotonic():
                    return True
                self._changed.wait(None if first is None else first - time.monotonic())
        return False

    def _take_due(self) -> list[str]:
        with self._changed:
            now = time.monotonic()
            due = [item for item, at in self._due.items() if at <= now]
            for item in due:
                del self._due[item]
                self._backing_off.discard(item)
            busy = [item for item in due if item in self._busy]
            self._again.update(busy)
        for item in busy:
            try:
                self.interrupt(item)
            except RETRIED as error:
                self._back_off(item, error)
        return [item for item in due if item not in busy]

    def _start_thread(self, item: str) -> None:
        try:
            if not self.has_work(item):
                return
        except RETRIED as error:
            self._back_off(item, error)
            return
        self._busy[item] = threading.Thread(target=self._work_on, args=(item,), name=f"{self.name} {item}", daemon=True)
        self._busy[item].start()

    def _work_on(self, item: str) -> None:
        """Advance an item until no event is left that came meanwhile, then schedule its next check."""
        again = True
        while again:
            seconds = self._advance(item)
            with self._changed:
                again = item not in self._backing_off and (item in self._again or seconds == 0) and not self.closing
                self._again.discard(item)
                if not again:
                    self._busy.pop(item, None)
                if not again and seconds is not None:
                    self.wake(item, seconds)

    def _advance(self, item: str) -> float | None:
        try:
            try:
                return self.advance(item)
            except RETRIED:
                raise
            except Exception as error:
                log.exception("%s: %s cannot continue", self.name, item)
                self.give_up(item, error)
        except RETRIED as error:
            self._back_off(item, error)
        return None

    def _back_off(self, item: str, error: Exception) -> None:
        if not self.closing:
            log.error("%s: %s failed and is tried again: %s", self.name, item, error, exc_info=True)
        with self._changed:
            self._backing_off.add(item)
            self._due[item] = time.monotonic() + self.retry_seconds
            self._changed.notify_all()
