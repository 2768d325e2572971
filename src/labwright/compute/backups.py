"""Online copies of the database from time to time: what folders do not hold (answers, notes) comes back from them."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from pathlib import Path

from labwright.compute.lab import Lab
from labwright.store import events

log = logging.getLogger(__name__)


class Backups:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._due = time.monotonic() + lab.settings.backup_minutes * 60
        self._at_event = events.last_seq(lab.db.reader())
        self._thread: threading.Thread | None = None

    def make_if_due(self) -> None:
        """Only when something happened since the last one; copies of a damaged one would drive out the good ones."""
        if self._lab.db.damage:
            return
        if time.monotonic() < self._due or (self._thread and self._thread.is_alive()):
            return
        self._due = time.monotonic() + self._lab.settings.backup_minutes * 60
        last = events.last_seq(self._lab.db.reader())
        if last != self._at_event:
            self._at_event = last
            self._thread = threading.Thread(target=self._make, name="backup", daemon=True)
            self._thread.start()

    def _make(self) -> None:
        try:
            make_backup(self._lab)
        except (OSError, sqlite3.Error) as error:
            log.error("no backup could be made, the next one is tried in time: %s", error)


def make_backup(lab: Lab) -> Path:
    folder = lab.paths.backups
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"labwright-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.db"
    lab.db.backup_to(target)
    for old in newest_backups(folder)[lab.settings.backups_kept :]:
        old.unlink()
    return target


def newest_backups(folder: Path) -> list[Path]:
    return sorted(folder.glob("labwright-*.db"), reverse=True)
