"""Copy the database from time to time: a rebuild restores from these copies what folders do not hold."""

from __future__ import annotations

import calendar
import contextlib
import logging
import sqlite3
import threading
import time
from pathlib import Path

from labwright.compute.lab import Lab
from labwright.domain.errors import LabwrightError
from labwright.domain.event import EventType
from labwright.store import events
from labwright.store.database import Database, DatabaseDamaged, read_position

log = logging.getLogger(__name__)


class Backups:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._due = time.monotonic() + lab.settings.backup_minutes * 60
        self._thread: threading.Thread | None = None

    def make_if_due(self) -> None:
        if self._lab.db.damage:
            return  # logged when it was found
        if time.monotonic() < self._due or (self._thread and self._thread.is_alive()):
            return
        self._due = time.monotonic() + self._lab.settings.backup_minutes * 60
        if has_news(self._lab):
            self._thread = threading.Thread(target=self._make, name="backup", daemon=True)
            self._thread.start()

    def _make(self) -> None:
        try:
            make_backup(self._lab)
        except (OSError, sqlite3.Error, LabwrightError) as error:
            log.error("The backup failed; the next one is made as usual: %s", error)


def has_news(lab: Lab) -> bool:
    """Return whether something happened since the newest readable backup.

    Server starts do not count: copies that differ in nothing else would push out older ones that matter.
    """
    for backup in newest_backups(lab.paths.backups):
        epoch, seq = read_position(backup)
        if epoch:
            return epoch != lab.db.epoch or events.any_after(lab.db.reader(), seq, but=EventType.SERVER_STARTED)
    return True


def make_backup(lab: Lab) -> Path:
    """Copy the database, unless it is damaged: such copies would push out the good ones."""
    if lab.db.damage:
        raise DatabaseDamaged(f"No backup is made: {lab.db.damage}")
    return copy_database(lab.db, lab.paths.backups, lab.settings.backups_kept)


def copy_database(database: Database, folder: Path, kept: int) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    with _ONE_AT_A_TIME:
        # The name is later than all others, even if the clock was set back: names show which is the newest.
        moment = time.time()
        for newest in newest_backups(folder):
            with contextlib.suppress(ValueError):  # not one of ours
                moment = max(moment, calendar.timegm(time.strptime(newest.name, _STAMP)) + 1)
                break
        target = folder / time.strftime(_STAMP, time.gmtime(moment))
        database.backup_to(target)
        for old in newest_backups(folder)[kept:]:
            old.unlink()
    return target


_ONE_AT_A_TIME = threading.Lock()  # two in the same second would have the same name
_STAMP = "labwright-%Y%m%dT%H%M%SZ.db"


def newest_backups(folder: Path) -> list[Path]:
    return sorted(folder.glob("labwright-*.db"), reverse=True)
