"""Runs whose metric files may hold more than the database does. An empty file each, so that no kill forgets one.

Active runs are looked at anyway. These are for the others: a start must not look through ten thousand old folders.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path


class UnreadMetrics:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._noted: set[str] = set(self.run_ids())
        self._sent: dict[str, dict[str, str]] = {}

    def run_ids(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except FileNotFoundError:
            return []

    @contextlib.contextmanager
    def growing(self, run_id: str) -> Iterator[dict[str, str]]:
        """Noted before anything is written; nobody forgets it in between.

        Given are the idempotency keys of what is written and not read yet, each with the digest of what was sent.
        """
        with self._lock:
            self.note(run_id)
            yield self._sent.setdefault(run_id, {})

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """Nothing is half appended meanwhile: what a full disk did not take is taken back before anybody reads it."""
        with self._lock:
            yield

    def note(self, run_id: str) -> None:
        if run_id not in self._noted:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            (self._folder / run_id).touch(mode=0o600)
            self._noted.add(run_id)

    def forget(self, run_id: str, is_read: Callable[[], bool]) -> None:
        if run_id not in self._noted:
            return
        with self._lock:
            if is_read():
                (self._folder / run_id).unlink(missing_ok=True)
                self._noted.discard(run_id)
                self._sent.pop(run_id, None)
