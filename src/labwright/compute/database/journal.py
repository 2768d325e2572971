"""What no run folder tells, as lines in one file, so that a lost database loses none of it: runs that have no folder
yet or never got one, names and notes that people changed later, what was deleted.

From launch on the run's folder tells its story; until then this does. Compacted at start.

It is noted before the commit: a disk too full for it must not leave half a run, and a kill half-way through a deletion
must not bring the run back. If the commit fails it is taken back: at a rebuild, what was refused must not begin, and
what was not deleted must not be missing.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from labwright.domain.run import Run
from labwright.files import append_whole, complete_lines, write_whole
from labwright.store.database import Transaction

log = logging.getLogger(__name__)


class Journal:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._fd: int | None = None

    def note(self, tx: Transaction, runs: Iterable[Run]) -> None:
        self.note_records(tx, (run.to_json() for run in runs))

    def note_records(self, tx: Transaction, records: Iterable[str]) -> None:
        """Runs as JSON."""
        self._append(tx, "".join(f'{{"run":{record}}}\n' for record in records))

    def note_deleted(self, tx: Transaction, deleted_id: str) -> None:
        """Of a run or a plan."""
        self._append(tx, f'{{"deleted":"{deleted_id}"}}\n')

    def _append(self, tx: Transaction, lines: str) -> None:
        with self._lock:
            if self._fd is None:
                self._fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            first = os.fstat(self._fd).st_size
            append_whole(self._fd, lines.encode())
            end = os.fstat(self._fd).st_size
        tx.on_rollback.append(lambda: self._blank(first, end))

    def _blank(self, first: int, end: int) -> None:
        """In place: that takes no room, and somebody may have noted more behind it."""
        if first == end:
            return
        fd = os.open(self._path, os.O_WRONLY)  # what is opened to append to can only be appended to
        try:
            os.pwrite(fd, b" " * (end - first - 1) + b"\n", first)
        finally:
            os.close(fd)

    def read(self) -> tuple[dict[str, Run], set[str]]:
        """The last word on each run, and the ids that were deleted."""
        runs: dict[str, Run] = {}
        deleted: set[str] = set()
        for entry in self._entries():
            if "deleted" in entry:
                deleted.add(entry["deleted"])
                runs.pop(entry["deleted"], None)
            elif run := _run_in(entry):
                runs[run.id] = run
        return runs, deleted

    def _entries(self) -> Iterable[dict[str, Any]]:
        offset = 0
        while True:
            lines, next_offset = complete_lines(str(self._path), offset, limit=8 << 20)
            if next_offset == offset:
                return
            offset = next_offset
            for line in lines:
                try:
                    entry = json.loads(line)
                except ValueError:  # taken back, or torn by a kill or a full disk; the lines around it are whole
                    continue
                if isinstance(entry, dict):
                    yield entry

    def compact(self, has_folder: Callable[[str], bool]) -> None:
        """Forget what a folder tells better."""
        runs, deleted = self.read()
        noted_later = (run for run in runs.values() if run.run_dir or run.is_terminal or not has_folder(run.id))
        lines = [f'{{"run":{run.to_json()}}}' for run in noted_later]
        lines += [f'{{"deleted":"{run_id}"}}' for run_id in deleted]
        with self._lock:
            write_whole(self._path, "".join(f"{line}\n" for line in lines).encode())
            self.close_file()

    def close_file(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _run_in(entry: dict[str, Any]) -> Run | None:
    try:
        return Run.from_dict(entry["run"])
    except (ValueError, KeyError, TypeError) as error:
        log.warning("a line of the journal is no run: %s", error)
        return None
