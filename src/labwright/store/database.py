"""The SQLite file: opening, migrations, the single writer, backups, and recovery from damage or deletion."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from labwright.domain.errors import LabwrightError, StorageFailed
from labwright.domain.event import Event
from labwright.store.statements import REST

log = logging.getLogger(__name__)
_MOMENT_SECONDS = 0.05
FILES = ("", "-wal", "-shm")  # the files of an open database, or of one after a kill


class DatabaseDamaged(LabwrightError):
    """The database is damaged."""

    code = "database_damaged"
    hint = "Run `labwright db rebuild`: it keeps the damaged file aside and restores every run from its folder."


class Transaction:
    """Changes and their events, stored together or not at all."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.events: list[Event] = []
        self.on_rollback: list[Callable[[], None]] = []  # undoes writes outside of the database

    def execute(self, sql: str, **values: object) -> sqlite3.Cursor:
        return self.connection.execute(sql, values)

    def take_back(self) -> None:
        """Undo the writes outside of the database. Errors are only logged: the caller gets the original error."""
        for undo in self.on_rollback:
            try:
                undo()
            except OSError:
                log.exception("a write outside of the database could not be undone after a failed transaction")

    def emit(self, event: Event) -> None:
        cursor = self.execute(
            REST["insert_event"],
            time=event.time,
            type=event.type,
            actor=event.actor,
            run_id=event.run_id,
            sweep_id=event.sweep_id,
            data=json.dumps(event.data, ensure_ascii=False),
        )
        self.events.append(replace(event, seq=cursor.lastrowid or 0))

    def next_event_number(self) -> int:
        """Return the number of the next event. It is exclusive while this transaction is open."""
        return int(self.connection.execute(REST["last_event_number"]).fetchone()[0]) + 1

    def emit_numbered(self, events: list[Event]) -> None:
        """Store thousands of events with one statement."""
        columns = ("seq", "time", "type", "actor", "run_id", "sweep_id")
        rows = ((*(getattr(event, name) for name in columns), _encode(event.data)) for event in events)
        self.connection.executemany(REST["insert_numbered_event"], rows)
        self.events.extend(events)


_encode = json.JSONEncoder(ensure_ascii=False).encode


class Database:
    """One write connection behind a lock, one read-only connection per thread."""

    def __init__(self, path: Path, *, check_at_once: int | None = None) -> None:
        """Open the database. A file larger than `check_at_once` is checked in the background, because reading all of it
        takes long; `damage` then has the result."""
        self.path = path
        self.damage = ""
        self.is_ours: Callable[[], bool] = lambda: True  # False: the file now belongs to the next server
        self._checker: _Checker | None = None
        self._lock = threading.Lock()
        self._readers = threading.local()
        self._generation = 0
        self._listeners: list[Callable[[list[Event]], None]] = []
        later = check_at_once is not None and path.exists() and path.stat().st_size > check_at_once
        self._writer = _open(path, check=not later)
        self.epoch = self._epoch()
        if later:
            self._checker = _Checker(path, self._note_damage)

    def _note_damage(self, words: str) -> None:
        self.damage = words
        log.error("%s %s", words, DatabaseDamaged.hint)

    def is_held(self) -> bool:
        """Return whether a transaction would have to wait for another."""
        return self._lock.locked()

    def on_commit(self, listener: Callable[[list[Event]], None]) -> None:
        """Register a listener. It is called in commit order under the lock, so nobody sees event 8 before event 7."""
        self._listeners.append(listener)

    @contextlib.contextmanager
    def listening(self, listener: Callable[[list[Event]], None]) -> Iterator[None]:
        """Like `on_commit`, but only inside the `with` block."""
        with self._lock:
            self._listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._lock:
            transaction = Transaction(self._writer)
            with _clear_errors():
                self._writer.execute("BEGIN IMMEDIATE")
            try:
                with _clear_errors():
                    yield transaction
                    self._writer.execute("COMMIT")
            except BaseException:
                self._rollback()
                transaction.take_back()
                raise
            for listener in self._listeners if transaction.events else ():
                listener(transaction.events)

    def _rollback(self) -> None:
        if self._writer.in_transaction:  # SQLite itself rolls back on a full disk
            self._writer.execute("ROLLBACK")

    def reader(self) -> sqlite3.Connection:
        if getattr(self._readers, "generation", None) != self._generation:
            self._readers.connection = self._open_reader()
            self._readers.generation = self._generation
        connection: sqlite3.Connection = self._readers.connection
        return connection

    def _open_reader(self) -> sqlite3.Connection:
        self.heal_if_deleted()  # the engine checks once a second; a request may come sooner
        with _clear_errors():
            return _connect(f"{self.path.as_uri()}?mode=ro")

    def _epoch(self) -> str:
        """The id of one continuous history. A rebuilt database gets a new one, so that clients notice."""
        row = self._writer.execute(REST["get_meta"], {"key": "epoch"}).fetchone()
        if row:
            return str(row[0])
        epoch = secrets.token_hex(4)
        self._writer.execute(REST["set_meta"], {"key": "epoch", "value": epoch})
        return epoch

    def renew_epoch(self) -> None:
        with self.transaction() as tx:
            tx.execute(REST["delete_meta"], key="epoch")
        self.epoch = self._epoch()

    def backup_to(self, target: Path) -> None:
        """Write a backup and check it before it counts: the disk may have failed since the file was opened."""
        try:
            with _clear_errors():
                copy_online(self.path, target, check=True)
        except DatabaseDamaged as error:
            self._note_damage(error.message)
            raise

    def heal_if_deleted(self) -> bool:
        """Write the file again if someone deleted it: the open connection still has all of its content."""
        if self._is_in_place() or not self.is_ours():
            return False
        with self._lock, _clear_errors():
            if self._is_in_place():
                return False  # another thread did it first
            for suffix in ("-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            aside = self.path.with_suffix(".healed")
            aside.unlink(missing_ok=True)
            copy = sqlite3.connect(aside)
            self._writer.backup(copy)
            copy.close()
            self._writer.close()
            os.chmod(aside, 0o600)
            aside.replace(self.path)
            self._writer = _open(self.path, check=False)  # it was just written
            self._generation += 1
        return True

    def _is_in_place(self) -> bool:
        """Return whether the file and its log exist. Without the log, new readers would miss commits."""
        return self.path.exists() and os.path.exists(f"{self.path}-wal")

    def close(self) -> None:
        """Close the database. The log is moved into the file, so that the file alone is complete."""
        if self._checker:
            self._checker.close()
        with self._lock:
            with contextlib.suppress(sqlite3.OperationalError):  # a full disk or an active reader: the log stays
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._writer.close()


def copy_online(path: Path, target: Path, *, check: bool = False) -> None:
    """Copy the pages in small steps, so that the writer can continue."""
    aside = target.with_suffix(".new")
    aside.unlink(missing_ok=True)
    source, copy = _connect(f"{path.as_uri()}?mode=ro"), sqlite3.connect(aside)
    try:
        source.backup(copy, pages=256, sleep=0.01)
        copy.execute("PRAGMA journal_mode = DELETE")
        if check:
            _refuse_damage(copy)
        os.chmod(aside, 0o600)
        aside.replace(target)
    finally:
        copy.close()
        source.close()
        aside.unlink(missing_ok=True)  # a partial copy would only fill a full disk further


def read_epoch(path: Path) -> str | None:
    """Return the history of a database, or None if it is missing or damaged. Opening it reports the damage."""
    return read_position(path)[0]


def read_position(path: Path) -> tuple[str | None, int]:
    """Return the id of the history and the number of its last event."""
    if not path.exists():
        return None, 0
    try:
        with contextlib.closing(_connect(f"{path.as_uri()}?mode=ro")) as connection:
            row = connection.execute(REST["get_meta"], {"key": "epoch"}).fetchone()
            last = connection.execute(REST["last_event"]).fetchone()[0]
    except sqlite3.DatabaseError:
        return None, 0
    return (str(row[0]) if row else None), last


class _Checker:
    """Check the whole file in its own thread."""

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        self._connection = _connect(f"{path.as_uri()}?mode=ro")
        self._tell = tell
        self._closing = False
        self._thread = threading.Thread(target=self._check, name="database-check", daemon=True)
        self._thread.start()

    def _check(self) -> None:
        try:
            with _clear_errors():
                _refuse_damage(self._connection)
        except LabwrightError as error:
            if not self._closing:
                self._tell(error.message)

    def close(self) -> None:
        self._closing = True
        while self._thread.is_alive():
            self._connection.interrupt()  # it has no effect before the check has started, so repeat it
            self._thread.join(_MOMENT_SECONDS)
        self._connection.close()


def is_damage(words: str) -> bool:
    return "malformed" in words or "not a database" in words


@contextlib.contextmanager
def _clear_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        words = str(error)
        if is_damage(words):
            raise DatabaseDamaged(f"The database is damaged: {words}.") from error
        if isinstance(error, sqlite3.OperationalError):
            raise StorageFailed(f"The database cannot be written: {words}.") from error
        raise


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.execute("PRAGMA cache_size = -1024")
    return connection


def _open(path: Path, *, check: bool = True) -> sqlite3.Connection:
    """Open with synchronous=NORMAL: a kill loses nothing; a power failure may lose the last moments."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    with _clear_errors():
        connection = _connect(path.as_uri())
        if check:
            _refuse_damage(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _migrate(connection)
    return connection


def _refuse_damage(connection: sqlite3.Connection) -> None:
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise DatabaseDamaged(f"The database is damaged: {' '.join(str(verdict).split())}.")


def _migrate(connection: sqlite3.Connection) -> None:
    """Apply each migration once, in order of its number, each in its own transaction."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    found = Path(__file__).with_name("migrations").iterdir()
    scripts = {int(entry.name[:4]): entry for entry in found if entry.name.endswith(".sql")}
    newest = max(scripts)
    if version > newest:
        raise LabwrightError(
            f"The database is of version {version}; this Labwright knows {newest}.",
            hint="Use the newer Labwright that created it, or run `labwright db rebuild` with this one.",
        )
    for number in sorted(number for number in scripts if number > version):
        connection.executescript(f"BEGIN; {scripts[number].read_text()} PRAGMA user_version = {number}; COMMIT;")
