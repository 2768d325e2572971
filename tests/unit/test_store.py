"""The database: one transaction per change, stable pages, reported damage."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright import store
from labwright.domain.alert import Alert, Severity
from labwright.domain.errors import Invalid, LabwrightError, StorageFailed
from labwright.domain.event import Event, EventType
from labwright.domain.run import Run, RunStatus
from labwright.domain.sweep import Sweep
from labwright.store import alerts, events, runs, sweeps
from labwright.store.database import Database, DatabaseDamaged
from labwright.store.idempotency import IdempotencyKey, remember
from labwright.store.queue import load_queues
from labwright.store.runs import SORTS, Filter
from tests.support.waiting import wait_until
from tests.unit.test_run_moves import a_run


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "labwright.db")
    yield made
    with contextlib.suppress(sqlite3.ProgrammingError):  # a test may have closed it
        made.reader().close()
        made.close()


def add(db: Database, count: int, first: int = 0) -> list[Run]:
    made = [a_run(id=f"run-{first + i:010d}", name=f"n{(first + i) % 3}", priority=i % 2) for i in range(count)]
    with db.transaction() as tx:
        for run in made:
            runs.insert(tx, run, "person")
    return made


def test_failed_change_leaves_neither_row_nor_event(db: Database) -> None:
    with pytest.raises(RuntimeError), db.transaction() as tx:
        runs.insert(tx, a_run(), "person")
        raise RuntimeError
    assert runs.count_by_status(db.reader())["ready"] == 0
    assert events.last_seq(db.reader()) == 0


def test_failed_rollback_action_hides_neither_the_error_nor_other_actions(db: Database, tmp_path: Path) -> None:
    written = tmp_path / "written"
    written.touch()
    with pytest.raises(RuntimeError, match="half-way"), db.transaction() as tx:
        tx.on_rollback += [(tmp_path / "missing").unlink, written.unlink]
        raise RuntimeError("half-way")
    assert not written.exists()


def test_older_database_gets_all_newer_migrations_despite_a_missing_number(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    folder = Path(store.__file__).parent / "migrations"
    connection = sqlite3.connect(path)
    for script in sorted(folder.glob("000[123]_*.sql")):
        connection.executescript(script.read_text())
    connection.executescript("PRAGMA user_version = 3")
    connection.close()
    Database(path).close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM plans").fetchone() == (0,)
    newest = max(int(script.name[:4]) for script in folder.glob("*.sql"))
    assert connection.execute("PRAGMA user_version").fetchone() == (newest,)
    connection.close()


def test_event_numbers_have_no_gap_even_after_a_rollback(db: Database) -> None:
    add(db, 1)
    with pytest.raises(RuntimeError), db.transaction() as tx:
        runs.insert(tx, a_run(id="run-x"), "person")
        raise RuntimeError
    add(db, 1, first=1)
    assert [event.seq for event in events.after(db.reader(), 0, 100)] == [1, 2]


def test_listeners_get_events_in_order(db: Database) -> None:
    heard: list[int] = []
    db.on_commit(lambda committed: heard.extend(event.seq for event in committed))

    def write(name: str) -> None:
        for _ in range(25):
            with db.transaction() as tx:
                tx.emit(Event(type=EventType.RUN_NOTICE, actor=name, time="t"))

    threads = [threading.Thread(target=write, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == list(range(1, 101))


@pytest.mark.parametrize("sort", sorted(SORTS))
def test_pages_show_every_run_once_in_the_requested_order(db: Database, sort: str) -> None:
    add(db, 11)
    whole, _ = runs.page(db.reader(), Filter(sort=sort), 100, None)
    seen: list[str] = []
    cursor = None
    while True:
        page, cursor = runs.page(db.reader(), Filter(sort=sort), 3, cursor)
        seen += page
        if cursor is None:
            break
    assert seen == whole
    assert len(seen) == 11


def test_pages_do_not_shift_while_runs_are_added(db: Database) -> None:
    add(db, 6)
    first, cursor = runs.page(db.reader(), Filter(), 3, None)
    add(db, 5, first=6)
    second, end = runs.page(db.reader(), Filter(), 3, cursor)
    ids = [json.loads(text)["id"] for text in first + second]
    assert ids == [f"run-{i:010d}" for i in (5, 4, 3, 2, 1, 0)]
    assert end is None


@pytest.mark.parametrize(
    "cursor",
    ["x", "é", "W10=", "WzEsMl0", "WyJcdWQ4MDAiLDFd", "W251bGwsMV0=", "WzEsMWU0MDBd", "e30=", "WzEsIngiXQ==", "\ud800"],
)
def test_foreign_cursor_is_refused(db: Database, cursor: str) -> None:
    with pytest.raises(Invalid):
        runs.page(db.reader(), Filter(), 3, cursor)


@pytest.mark.parametrize("content", [b"this is no database, whatever its name says" * 50, b"\0" * 8192])
def test_file_that_is_not_a_database_is_reported_as_damage(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "labwright.db").write_bytes(content)
    with pytest.raises(DatabaseDamaged):
        Database(tmp_path / "labwright.db")


def test_torn_database_is_reported_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "labwright.db"
    db = Database(path)
    add(db, 500)
    db._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatabaseDamaged) as caught:
        Database(path)
    assert "labwright db rebuild" in caught.value.hint


def test_database_of_a_newer_version_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "labwright.db"
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(LabwrightError, match="version 999"):
        Database(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == 999
    connection.close()


@pytest.mark.parametrize("removed", [["", "-wal", "-shm"], [""], ["-wal"], ["-wal", "-shm"]])
def test_deleted_file_is_written_again_with_its_content(db: Database, tmp_path: Path, removed: list[str]) -> None:
    add(db, 3)
    epoch = db.epoch
    for suffix in removed:
        Path(f"{tmp_path / 'labwright.db'}{suffix}").unlink()
    add(db, 2, first=3)
    db.is_ours = lambda: False
    assert not db.heal_if_deleted()  # the file there may belong to another server by now
    db.is_ours = lambda: True
    assert db.heal_if_deleted()
    assert not db.heal_if_deleted()
    add(db, 1, first=5)
    assert runs.count_by_status(db.reader())["ready"] == 6
    db.close()
    again = Database(tmp_path / "labwright.db")
    assert runs.count_by_status(again.reader())["ready"] == 6
    assert again.epoch == epoch
    again.reader().close()
    again.close()


def test_reader_of_a_deleted_file_finds_it_restored(db: Database, tmp_path: Path) -> None:
    """A thread's first read may come before the engine's next tick."""
    add(db, 3)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{tmp_path / 'labwright.db'}{suffix}").unlink()
    found: list[int] = []

    def look() -> None:
        reader = db.reader()
        found.append(runs.count_by_status(reader)["ready"])
        reader.close()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [3]


def test_backup_is_a_complete_and_private_database(db: Database, tmp_path: Path) -> None:
    add(db, 3)
    target = tmp_path / "copy.db"
    db.backup_to(target)
    assert target.stat().st_mode & 0o077 == 0
    copy = Database(target)
    assert runs.count_by_status(copy.reader())["ready"] == 3
    copy.reader().close()
    copy.close()


def test_failed_backup_leaves_nothing_behind(db: Database, tmp_path: Path) -> None:
    (tmp_path / "copy.db").mkdir()  # cannot be replaced by a file
    with pytest.raises(OSError, match="directory"):
        db.backup_to(tmp_path / "copy.db")
    assert not list(tmp_path.glob("*.new"))


def test_write_refused_by_the_disk_is_a_storage_error(db: Database) -> None:
    pages = db._writer.execute("PRAGMA page_count").fetchone()[0]
    db._writer.execute(f"PRAGMA max_page_count = {pages}")  # how SQLite reports a full disk
    with pytest.raises(StorageFailed):
        add(db, 2000)
    assert runs.count_by_status(db.reader())["ready"] == 0
    db._writer.execute("PRAGMA max_page_count = 1000000")
    add(db, 2)
    assert runs.count_by_status(db.reader())["ready"] == 2


def test_status_can_be_found_after_a_move(db: Database) -> None:
    run = add(db, 1)[0]
    with db.transaction() as tx:
        runs.change(tx, run, run.move(RunStatus.QUEUED, queued_at="2026-01-01T00:00:00.000Z"), "person")
    assert [found.id for found in runs.with_status(db.reader(), RunStatus.QUEUED)] == [run.id]


def test_every_sweep_with_queued_runs_is_listed_once_whatever_its_run_names(db: Database) -> None:
    """The names sort before, between and after the sweeps' ids."""
    wanted = ["", "sweep-b", "sweep-d"]
    with db.transaction() as tx:
        for number, (sweep, name) in enumerate((s, n) for s in wanted for n in ("", "a", "sweep-c", "z", "true")):
            run = a_run(id=f"run-{number:010d}", name=name, sweep_id=sweep or None)
            runs.insert(tx, run.move(RunStatus.QUEUED, queued_at="2026-01-01T00:00:00.000Z"), "person")
    assert list(load_queues(db.reader(), set(), 10)) == [f"{sweep}/0" for sweep in wanted]
    assert list(load_queues(db.reader(), {"sweep-b"}, 10)) == ["/0", "sweep-d/0"]


def test_sound_database_is_never_reported_as_damaged(db: Database, tmp_path: Path) -> None:
    """It has a row in every table, because SQLite's own check can be surprising."""
    parent = add(db, 1)[0]
    with db.transaction() as tx:
        runs.insert(tx, a_run(id="run-child", after=(parent.id,)), "person", 1)
        sweeps.insert(tx, Sweep(id="sweep-a", name="s", created_at="t", created_by="person", parallel=1), "person")
        alert = Alert(id="alert-a", run_id=parent.id, message="m", severity=Severity.INFO, created_at="t", rule="r")
        alerts.insert(tx, alert, "person")
        remember(tx, IdempotencyKey.of("k", "POST /runs", b""), {})
    db.close()
    Database(tmp_path / "labwright.db").close()


def test_large_database_is_checked_in_the_background(tmp_path: Path) -> None:
    path = tmp_path / "labwright.db"
    Database(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE filler (text TEXT)")
        connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 1000,) for _ in range(200)])
        connection.commit()
    whole = Database(path, check_at_once=0)
    whole.close()
    content = path.read_bytes()
    path.write_bytes(content[:-8192] + b"\xff" * 4096 + content[-4096:])
    with pytest.raises(DatabaseDamaged):
        Database(path)
    damaged = Database(path, check_at_once=0)
    wait_until(lambda: damaged.damage, "the check to be done")
    damaged.close()
    assert "damaged" in damaged.damage and whole.damage == ""
