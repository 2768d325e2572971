"""A file with facts that no run folder holds, so that a lost database can be rebuilt: runs without a folder, names and
notes that people changed later, deletions.

From its launch on, a run's folder holds its facts. The journal is compacted when the server starts.

A line is written before the commit: a full disk must not leave half a run, and a kill during a deletion must not bring
the run back. If the commit fails, the line is blanked: a rebuild must not start a refused run, nor drop a run whose
deletion failed.
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
        """Write runs that are JSON already."""
        self._append(tx, "".join(f'{{"run":{record}}}\n' for record in records))

    def note_deleted(self, tx: Transaction, deleted_id: str) -> None:
        """Write the deletion of a run or a plan."""
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
        """Overwrite lines with spaces in place: that needs no space, and more lines may follow."""
        if first == end:
            return
        fd = os.open(self._path, os.O_WRONLY)  # a file opened for appending cannot be overwritten
        try:
            os.pwrite(fd, b" " * (end - first - 1) + b"\n", first)
        finally:
            os.close(fd)

    def read(self) -> tuple[dict[str, Run], set[str]]:
        """Return the newest record of each run, and the deleted ids."""
        runs: dict[str, Run] = {}
        deleted: set[str] = set()
        for entry in self._entries():
            if "deleted" in entry:
                deleted.add(entry["deleted"])
                runs.pop(entry["deleted"], None)
            else:
                try:
                    run = Run.from_dict(entry["run"])
                    runs[run.id] = run
                except (ValueError, KeyError, TypeError) as error:
                    log.warning("A line of the journal is not a run: %s", error)
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
                except ValueError:  # blanked, or cut by a kill or a full disk; the other lines are complete
                    continue
                if isinstance(entry, dict):
                    yield entry

    def compact(self, has_folder: Callable[[str], bool]) -> None:
        """Remove runs whose folder holds newer facts."""
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
