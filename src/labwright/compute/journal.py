"""Runs that have no folder yet (or never got one), as lines in one file, so that a lost database loses none of them.

From launch on the run's folder tells its story; until then this does. Appended after the commit, compacted at start.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from labwright.domain.run import Run
from labwright.files import complete_lines, write_whole


class Journal:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._fd: int | None = None

    def note(self, runs: Iterable[Run]) -> None:
        self._append({"run": run.to_dict()} for run in runs)

    def note_deleted(self, run_id: str) -> None:
        self._append([{"deleted": run_id}])

    def _append(self, entries: Iterable[dict[str, Any]]) -> None:
        block = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries).encode()
        with self._lock:
            if self._fd is None:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(self._fd, block)

    def read(self) -> tuple[dict[str, Run], set[str]]:
        """The last word on each run, and the ids that were deleted."""
        runs: dict[str, Run] = {}
        deleted: set[str] = set()
        for entry in self._entries():
            if "deleted" in entry:
                deleted.add(entry["deleted"])
                runs.pop(entry["deleted"], None)
            else:
                run = Run.from_dict(entry["run"])
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
                if line.startswith(b"{") and line.endswith(b"}"):
                    yield json.loads(line)

    def compact(self, has_folder: Callable[[str], bool]) -> None:
        """Forget what a folder tells better."""
        runs, deleted = self.read()
        entries = [{"run": run.to_dict()} for run in runs.values() if not has_folder(run.id)]
        lines = [json.dumps(entry, ensure_ascii=False) for entry in [*entries, *({"deleted": i} for i in deleted)]]
        with self._lock:
            write_whole(self._path, "".join(f"{line}\n" for line in lines).encode())
            self.close_file()

    def close_file(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
