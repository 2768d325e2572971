"""Runs whose metric files may hold more than the database, and the file for points that arrive over HTTP.

Each such run has an empty marker file, so that no kill forgets it. Active runs are read anyway; the markers are for the
others, so that a start need not read ten thousand old folders.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from labwright.files import append_whole
from labwright.store.idempotency import IdempotencyKey, refuse_other


class UnreadMetrics:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._marked: set[str] = set(self.run_ids())
        self._sent: dict[str, dict[str, str]] = {}  # run -> idempotency keys of unread points, with their digests

    def run_ids(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except FileNotFoundError:
            return []

    def append_points(
        self, run_id: str, metrics_folder: str, lines: list[dict[str, Any]], key: IdempotencyKey | None = None
    ) -> None:
        """Append points sent over HTTP to a file of the run, like all other points: all of them, or none and an error.

        Raises Conflict if the key was used for other points that are not read yet; the database does not know those.
        """
        os.makedirs(metrics_folder, mode=0o700, exist_ok=True)
        block = b"".join(to_json(line) + b"\n" for line in lines)
        with self._lock:
            self.mark(run_id)
            sent = self._sent.setdefault(run_id, {})
            if key is not None:
                refuse_other(key, sent.get(key.key, key.digest))
            fd = os.open(f"{metrics_folder}/http.jsonl", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                append_whole(fd, block)
            finally:
                os.close(fd)
            if key is not None:
                sent[key.key] = key.digest

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """Keep appends out: after a full disk a half-written block is removed before anybody reads it."""
        with self._lock:
            yield

    def mark(self, run_id: str) -> None:
        if run_id not in self._marked:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            (self._folder / run_id).touch(mode=0o600)
            self._marked.add(run_id)

    def unmark(self, run_id: str, is_read: Callable[[], bool]) -> None:
        if run_id not in self._marked:
            return
        with self._lock:
            if is_read():
                (self._folder / run_id).unlink(missing_ok=True)
                self._marked.discard(run_id)
                self._sent.pop(run_id, None)


def part_of(key: IdempotencyKey, number: int) -> IdempotencyKey:
    """Return the key of one line. Many points are several lines, and a kill may leave only the first ones."""
    return key.again(f"part {number}")
