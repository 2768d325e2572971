"""The journal: its content after a kill at any byte, and after a full disk."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.compute.database.journal import Journal
from labwright.domain.run import Run, RunStatus
from labwright.store.database import Database, Transaction
from tests.support.full_disk import limit_file_size
from tests.unit.test_run_moves import a_run


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "journal.jsonl")
    yield made
    made.close_file()


@pytest.fixture
def tx() -> Iterator[Transaction]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        yield Transaction(connection)


def numbered(number: int, **facts: object) -> Run:
    return a_run(id=f"run-{number:010d}", **facts)


def test_last_record_of_a_run_counts(journal: Journal, tx: Transaction) -> None:
    run = numbered(1)
    journal.note(tx, [run])
    journal.note(tx, [run.move(RunStatus.QUEUED)])
    assert journal.read()[0][run.id].status is RunStatus.QUEUED


def test_deleted_run_does_not_come_back(journal: Journal, tx: Transaction) -> None:
    journal.note(tx, [numbered(1), numbered(2)])
    journal.note_deleted(tx, numbered(1).id)
    runs, deleted = journal.read()
    assert (set(runs), deleted) == ({numbered(2).id}, {numbered(1).id})


def test_journal_is_readable_if_cut_at_any_byte(journal: Journal, tx: Transaction, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal.note(tx, [numbered(1)])
    first = path.stat().st_size
    journal.note(tx, [numbered(2, name="naïve ✓")])
    whole = path.read_bytes()
    for cut in range(first, len(whole)):
        path.write_bytes(whole[:cut])
        assert set(Journal(path).read()[0]) == {numbered(1).id}


def test_records_after_a_torn_line_are_read(tmp_path: Path, tx: Transaction) -> None:
    path = tmp_path / "journal.jsonl"
    first = Journal(path)
    first.note(tx, [numbered(1), numbered(2)])
    first.close_file()
    path.write_bytes(path.read_bytes()[:-40])
    again = Journal(path)
    again.note(tx, [numbered(3)])
    again.close_file()
    assert set(Journal(path).read()[0]) == {numbered(1).id, numbered(3).id}


@pytest.mark.parametrize(
    "line", [b"{}", b"{]}", b'{"run":{}}', b'{"run":{"id":1}}', b'{"run":null}', b"\xff\xfe", b"[]", b'{"other":{}}']
)
def test_invalid_line_hides_no_other(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line + b"\n" + f'{{"run":{numbered(1).to_json()}}}\n'.encode())
    assert set(Journal(path).read()[0]) == {numbered(1).id}


def test_full_disk_leaves_no_half_line(journal: Journal, tx: Transaction, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal.note(tx, [numbered(1)])
    size = path.stat().st_size
    with limit_file_size(size + 20), pytest.raises(OSError, match="too large"):
        journal.note(tx, [numbered(2)])
    assert path.stat().st_size == size
    journal.note(tx, [numbered(3)])
    assert set(journal.read()[0]) == {numbered(1).id, numbered(3).id}


def test_compacting_drops_what_a_run_folder_records_better(journal: Journal, tx: Transaction, tmp_path: Path) -> None:
    journal.note(tx, [numbered(1), numbered(2), numbered(3)])
    journal.note_deleted(tx, numbered(3).id)
    journal.compact(lambda run_id: run_id == numbered(1).id)
    runs, deleted = journal.read()
    assert (set(runs), deleted) == ({numbered(2).id}, {numbered(3).id})
    journal.note(tx, [numbered(4)])
    assert set(journal.read()[0]) == {numbered(2).id, numbered(4).id}
    assert os.stat(tmp_path / "journal.jsonl").st_mode & 0o077 == 0


def test_uncommitted_records_are_rolled_back_and_hide_nothing_else(journal: Journal, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with contextlib.closing(Database(tmp_path / "labwright.db")) as database:
        with database.transaction() as tx:
            journal.note(tx, [numbered(1)])
        path.write_bytes(path.read_bytes()[:-1])  # as a kill leaves it
        with pytest.raises(ZeroDivisionError), database.transaction() as tx:
            journal.note(tx, [numbered(2), numbered(3)])
            journal.note(tx, [])
            journal.note_deleted(tx, numbered(1).id)
            raise ZeroDivisionError
        with database.transaction() as tx:
            journal.note(tx, [numbered(4)])
    runs, deleted = Journal(path).read()
    assert (set(runs), deleted) == ({numbered(1).id, numbered(4).id}, set())
