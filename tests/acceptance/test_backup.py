"""Back up a whole history into one file and restore it: with and without a server, and with kills in between."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.compute.database.archive import SEAL, archive, carried
from labwright.compute.database.backups import copy_database, has_news, make_backup, newest_backups
from labwright.compute.database.restore import restore
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid, LabwrightError, NotFound
from labwright.domain.event import Event, EventType
from labwright.paths import ProjectPaths
from labwright.server.opening import prepare_state
from labwright.store.database import Database, DatabaseDamaged
from tests.acceptance.test_cli import LABWRIGHT, answer, labwright
from tests.support.children import end_with_test
from tests.support.lab import lab_in, make_run
from tests.support.live_server import LiveServer
from tests.support.storage import ending, facts, gate
from tests.support.waiting import wait_until

LARGE = 150 << 20  # zeros: they take a moment to pack, and almost no space on disk
LEFT_OUT = {  # files that a restored project creates again, and secret files
    *("token", "sign_in", "server", "lock", "port", "reserve", "database_pointer", "restored", "restoring"),
    *(
        "channels",
        "headers",
        "secrets",
        "shells",
        "rehearsals",
        "python_path",
        "unread_metrics",
        "metric_claims",
        "logs",
    ),
}


def test_whole_history_is_restored_in_another_place(make_server: Callable[..., LiveServer], tmp_path: Path) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="1").start()
    session = server.post("/sessions", {"title": "a talk"})["id"]
    done = server.wait_for_end(server.submit("echo heard; exit 3", tags=["t"], params={"lr": 0.1})["id"])["id"]
    server.call("POST", f"/runs/{done}/metrics", {"points": [{"key": "loss", "step": 1, "value": 0.5}]})
    server.call("PATCH", f"/runs/{done}", {"notes": "a note"})
    going = server.submit(gate(server, "go"))["id"]
    server.wait_for_status(going, "running")
    queued = server.submit("exit 4")["id"]
    secret = server.submit("true", env={"API_TOKEN": "not-for-others"})["id"]
    before = {run["id"]: run for run in server.all_runs()}
    file = tmp_path / "history.tar.gz"
    made = answer(server, "backup", "--to", str(file), "--json")
    assert made["path"] == str(file) and made["files"] > 5
    assert file.stat().st_mode & 0o077 == 0
    later = server.post("/runs", {"command": "true"})["id"]
    assert "already exists" in labwright(server, "backup", "--to", str(file)).stderr

    elsewhere = make_server("elsewhere", LABWRIGHT_MAX_PARALLEL="1")
    assert answer(elsewhere, "restore", str(file), "--json")["project"] == str(server.project)
    assert "already has a history" in labwright(elsewhere, "restore", str(file)).stderr
    elsewhere.start()
    after = {run["id"]: run for run in elsewhere.all_runs()}
    assert later not in after
    assert {run_id: facts(run) for run_id, run in after.items()} == {i: facts(run) for i, run in before.items()}
    assert ending(after[done]) == ending(before[done])
    assert elsewhere.get(f"/runs/{done}/logs")["content"] == "heard\n"
    wait_until(lambda: elsewhere.run(done)["summary"].get("loss", {}).get("last") == 0.5, "the metric")
    assert elsewhere.get(f"/sessions/{session}")["title"] == "a talk"
    assert (after[going]["status"], after[going]["status_reason"]) == ("lost", "restored")
    assert (after[secret]["status"], "secret variables" in after[secret]["error"]) == ("failed", True)
    assert elsewhere.wait_for_end(queued)["exit_code"] == 4
    assert elsewhere.token != server.token
    (server.project / "go").touch()
    assert server.wait_for_end(going)["status"] == "finished"  # the first project does not notice
    assert not list(tmp_path.rglob("*.part")) and not list(tmp_path.rglob("*.restoring"))


def test_backup_without_a_server_is_complete_or_absent_after_a_kill(
    make_server: Callable[..., LiveServer], tmp_path: Path
) -> None:
    server = make_server().start()
    run = server.wait_for_end(server.submit("echo heard")["id"])["id"]
    server.kill()
    large = server.state / "runs" / run / "large"
    with large.open("wb") as hole:
        hole.truncate(LARGE)
    file, part = tmp_path / "history.tar.gz", tmp_path / "history.tar.gz.part"
    packing = begin(server, "backup", "--to", str(file))
    wait_until(lambda: part.exists() and part.stat().st_size > 1000, "the backup to be under way")
    kill_tree(packing)
    assert not file.exists()
    assert answer(server, "backup", "--to", str(file), "--json")["bytes"] > LARGE
    assert not part.exists()

    copy = make_server("copy")
    unpacking = begin(copy, "restore", str(file))
    wait_until(lambda: any(copy.project.glob("*.restoring/*/runs/*/large")), "the restore to be under way")
    kill_tree(unpacking)
    assert not copy.state.exists()
    answer(copy, "restore", str(file), "--json")
    assert os.listdir(copy.project) == [".labwright"]
    (copy.state / "restored.json").read_bytes()
    copy.start()
    assert copy.get(f"/runs/{run}/logs")["content"] == "heard\n"
    assert not (copy.state / "restored.json").exists()
    copy.stop()
    server.start()
    assert server.run(run)["status"] == "finished"


def begin(server: LiveServer, *arguments: str) -> subprocess.Popen[bytes]:
    """Start the command in its own process group: it leaves the work to a child."""
    return end_with_test(
        subprocess.Popen([*LABWRIGHT, *arguments], cwd=server.project, env=server.environment, start_new_session=True)
    )


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, 9)
    process.wait()


def test_every_file_of_the_state_folder_is_backed_up_or_excluded_on_purpose() -> None:
    paths = ProjectPaths(Path("/p"))
    spelled = {name for name, value in vars(paths).items() if isinstance(value, Path)} - {"project", "state", "config"}
    going = {name for name in spelled if getattr(paths, name) in carried(paths)} | {"backups"}
    assert spelled == going | LEFT_OUT
    assert not going & LEFT_OUT


@pytest.fixture
def history(tmp_path: Path) -> Path:
    paths = prepare_state(tmp_path)
    Database(paths.database).close()
    (paths.runs / "run-0000000000").mkdir()
    (paths.runs / "run-0000000000" / "output.log").write_bytes(os.urandom(200_000))
    (paths.runs / "run-0000000000" / "secrets.json").write_text("{}")
    database = Database(paths.database)
    made = archive(paths, copy_database(database, paths.backups, 5), tmp_path / "history.tar.gz")
    database.close()
    return Path(made.path)


def into(folder: Path) -> ProjectPaths:
    folder.mkdir()
    return ProjectPaths(folder)


def test_truncated_or_changed_file_restores_nothing(history: Path, tmp_path: Path) -> None:
    whole = history.read_bytes()
    paths = into(tmp_path / "copy")
    restored = into(tmp_path / "whole")
    restore(restored, history)
    assert not list(restored.state.rglob("secrets.json"))
    middle = len(whole) // 2
    bad = [whole[: len(whole) * i // 7] for i in range(7)] + [
        whole[:-20],
        b"text",
        whole[:middle] + whole[middle + 9 :],
    ]
    for content in bad:
        history.write_bytes(content)
        with pytest.raises(Invalid, match="Nothing was restored"):
            restore(paths, history)
        assert os.listdir(paths.project) == []
    with pytest.raises(NotFound):
        restore(paths, tmp_path / "nowhere")


def test_restore_never_writes_outside_its_folder(tmp_path: Path) -> None:
    def packed(*members: tuple[str, bytes, str]) -> Path:
        file = tmp_path / "hostile.tar.gz"
        with tarfile.open(file, "w:gz") as tar:
            for name, kind, link in (*members, (SEAL, tarfile.REGTYPE, "")):
                info = tarfile.TarInfo(name)
                info.type, info.linkname, info.size = kind, link, 2 if kind == tarfile.REGTYPE else 0
                tar.addfile(info, io.BytesIO(b"{}"))
        return file

    paths = into(tmp_path / "copy")
    plain, link = tarfile.REGTYPE, tarfile.SYMTYPE
    for members in (
        [("../out", plain, "")],
        [(f"{tmp_path}/out", plain, "")],
        [("token", plain, "")],
        [("runs/../../../out", plain, "")],
        [("runs/pipe", tarfile.FIFOTYPE, "")],
        [("runs/hard", tarfile.LNKTYPE, "/etc/passwd")],
        [("runs/twice", plain, ""), ("runs/twice", plain, "")],
        [("runs/way", link, str(tmp_path)), ("runs/way/out", plain, "")],
    ):
        with pytest.raises(LabwrightError, match="Nothing was restored"):
            restore(paths, packed(*members))
        assert not (tmp_path / "out").exists()
        assert os.listdir(paths.project) == []


def test_two_restores_at_once_do_not_mix(history: Path, tmp_path: Path) -> None:
    paths = into(tmp_path / "copy")
    fd = os.open(paths.project, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pytest.raises(Conflict, match="is running"):
        restore(paths, history)
    os.close(fd)


def test_newest_backup_is_kept_though_the_clock_was_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(tmp_path / "labwright.db")
    folder = tmp_path / "backups"
    for ahead in (1e9, 1e9 + 5, 0.0, 1.0, 1.0):
        monkeypatch.setattr(time, "time", lambda ahead=ahead: 1.7e9 + ahead)
        made = copy_database(database, folder, kept=2)
        assert newest_backups(folder)[0] == made
    assert len(newest_backups(folder)) == 2
    database.close()


def test_changes_since_the_newest_backup_count_as_news(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        assert has_news(lab)  # no backup yet
        make_backup(lab)
        with lab.db.transaction() as tx:
            tx.emit(Event(type=EventType.SERVER_STARTED, actor="system", time=now()))
        assert not has_news(lab)
        make_run(lab, "one")
    with lab_in(tmp_path / "project") as lab:
        assert has_news(lab)
        make_backup(lab)
        (lab.paths.backups / "labwright-99990101T000000Z.db").write_bytes(b"a bad backup")
        assert not has_news(lab)
        lab.db.renew_epoch()
        assert has_news(lab)  # the backup is of another history


@pytest.mark.parametrize("damaged", [1 << 12, 1 << 17], ids=["one page", "the schema too"])
def test_copy_of_a_database_damaged_after_the_start_does_not_count(tmp_path: Path, damaged: int) -> None:
    with lab_in(tmp_path / "project") as lab:
        good = make_backup(lab)
        with contextlib.closing(sqlite3.connect(lab.paths.database)) as beside:
            beside.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with lab.paths.database.open("r+b") as file:
            file.seek(-damaged, os.SEEK_END)
            file.write(b"\xa5" * damaged)
        with pytest.raises(DatabaseDamaged):
            make_backup(lab)
        assert list(lab.paths.backups.iterdir()) == [good]
        assert lab.db.damage  # from here on /health reports it


def test_copy_of_a_damaged_database_does_not_replace_a_good_backup(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        good = make_backup(lab)
        lab.db.damage = "row 7 missing from index"
        with pytest.raises(DatabaseDamaged, match="row 7"):
            make_backup(lab)
        assert newest_backups(lab.paths.backups) == [good]
