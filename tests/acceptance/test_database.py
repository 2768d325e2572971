"""The database is damaged, deleted, of another version, restored, or in another place."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.compute.cluster import machine
from labwright.compute.database.backups import newest_backups
from labwright.compute.database.place import local_folder, place_database, place_of
from labwright.compute.database.rebuild import rebuild
from labwright.domain.errors import StorageFailed
from labwright.domain.run import Run, RunStatus
from labwright.domain.sweep import Sweep
from labwright.paths import ProjectPaths
from labwright.server import opening
from labwright.server.opening import prepare_state
from labwright.settings import load_settings
from labwright.store.database import Database, DatabaseDamaged
from tests.support.live_server import LiveServer
from tests.support.storage import ending, facts, gate, remove_database, try_to_start
from tests.support.waiting import wait_until
from tests.unit.test_run_moves import a_run


def test_damaged_database_is_reported_and_rebuilt(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    sweep = server.post("/sweeps/wild", {"name": "s", "goal": "g"})["id"]
    made = [server.wait_for_end(server.submit(f"exit {i}", sweep_id=sweep)["id"]) for i in range(4)]
    server.stop()
    path = server.state / "labwright.db"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    done = try_to_start(server)
    assert "damaged" in done.stderr
    assert "labwright db rebuild" in done.stderr
    assert path.read_bytes() == whole[: len(whole) // 2]
    result = rebuild(ProjectPaths(server.project))
    assert (result.runs, result.sweeps, result.unreadable) == (4, 1, 0)
    assert Path(str(result.kept_aside)).read_bytes() == whole[: len(whole) // 2]
    server.start()
    assert [ending(run) for run in server.all_runs()] == [ending(run) for run in made[::-1]]
    assert server.get(f"/sweeps/{sweep}")["progress"]["total"] == 4
    server.kill()
    for file in server.state.glob("labwright.db*"):  # an empty file is a valid database without runs
        file.write_bytes(b"")
    server.start()
    assert [ending(run) for run in server.all_runs()] == [ending(run) for run in made[::-1]]


def test_damage_in_the_run_table_of_a_large_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_CHECKED_AT_ONCE_BYTES", 0)
    paths = prepare_state(tmp_path)
    with contextlib.closing(Database(paths.database)) as database:
        (page,) = database.reader().execute("SELECT rootpage FROM sqlite_master WHERE name LIKE '%autoindex_runs%'")
        (size,) = database.reader().execute("PRAGMA page_size")
    with paths.database.open("r+b") as file:
        file.seek((page[0] - 1) * size[0])
        file.write(b"x" * size[0])
    with pytest.raises(DatabaseDamaged, match="damaged"):
        opening.open_lab(paths, load_settings(tmp_path), "")


def test_after_a_clean_stop_the_file_is_the_whole_database(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    run = server.post("/runs", {"command": "true"})["id"]
    server.stop()
    connection = sqlite3.connect(f"file:{server.state / 'labwright.db'}?immutable=1", uri=True)
    assert connection.execute("SELECT id FROM runs").fetchall() == [(run,)]
    connection.close()


def test_database_of_a_newer_version_is_refused_and_unchanged(make_server: Callable[..., LiveServer]) -> None:
    server = make_server()
    path = server.state / "labwright.db"
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = path.read_bytes()
    assert "999" in try_to_start(server).stderr
    assert path.read_bytes() == before


def write_journal(paths: ProjectPaths, *noted: Run) -> None:
    paths.journal.write_text("".join(f'{{"run":{run.to_json()}}}\n' for run in noted))


def test_unreadable_files_hide_nothing_else_from_a_rebuild(tmp_path: Path) -> None:
    paths = prepare_state(tmp_path)
    good = Sweep(id="sweep-0000000001", name="good", created_at="t", created_by="person")
    paths.sweep(good.id).write_text(json.dumps(good.to_dict()))
    paths.sweep("sweep-0000000002").write_bytes(b"")
    write_journal(paths, a_run(sweep_id=good.id))
    with paths.journal.open("ab") as file:
        file.write(b'{"run": {"id": "run-half')
    broken = paths.runs / "run-0000000000"
    broken.mkdir()
    (broken / "spec.json").write_text("{")
    result = rebuild(paths)
    assert (result.runs, result.sweeps, result.unreadable) == (1, 1, 2)
    assert (broken / "spec.json").exists()


def test_rebuild_does_not_create_runs_of_an_uncommitted_sweep(tmp_path: Path) -> None:
    """The journal notes them before the sweep is stored.

    A client without a response sends the sweep again, and would get them twice.
    """
    paths = prepare_state(tmp_path)
    alone = a_run(RunStatus.QUEUED)
    write_journal(paths, alone, a_run(RunStatus.QUEUED, id="run-0000000009", sweep_id="sweep-0000000009"))
    assert rebuild(paths).runs == 1
    with sqlite3.connect(paths.database) as database:
        assert database.execute("SELECT id FROM runs").fetchall() == [(alone.id,)]


def test_database_deleted_under_a_running_server_is_restored(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="2").start()
    sweep = server.post("/sweeps/wild", {"name": "mid"})["id"]
    done = server.wait_for_end(server.submit("exit 3", sweep_id=sweep)["id"])
    held = [server.submit(f"{gate(server, 'go')}; exit {i}", sweep_id=sweep)["id"] for i in range(4)]
    server.wait_for_status(held[0], "running")
    epoch = server.get("/events?limit=1")[0]["epoch"]
    remove_database(server)
    meanwhile = server.post("/runs", {"command": "true", "name": "meanwhile"})["id"]
    assert len(server.all_runs()) == 6
    wait_until((server.state / "labwright.db").exists, "the database to be back")
    (server.project / "go").touch()
    for number, run_id in enumerate(held):
        assert server.wait_for_end(run_id)["exit_code"] == number
    server.restart()
    assert {run["id"] for run in server.all_runs()} == {done["id"], *held, meanwhile}
    assert ending(server.run(done["id"])) == ending(done)
    assert server.get("/events?limit=1")[0]["epoch"] == epoch


def test_database_deleted_while_the_server_is_down_is_rebuilt_correctly(
    make_server: Callable[..., LiveServer],
) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="3", LABWRIGHT_GRACE_SECONDS="1").start()
    sweep = server.post("/sweeps/wild", {"name": "mid", "goal": "g", "parallel": 2})
    common = {"sweep_id": sweep["id"], "tags": ["t"], "params": {"lr": 0.1}, "seed": 1, "env": {"A": "1"}}
    finished = server.wait_for_end(server.submit("true", name="finished", **common)["id"])["id"]
    failed = server.wait_for_end(server.submit("exit 9", name="failed", **common)["id"])["id"]
    killed = server.wait_for_end(server.submit("kill -9 $$", name="killed")["id"])["id"]
    gone = server.wait_for_end(server.submit("true", name="gone")["id"])["id"]
    left = server.state / "runs" / gone
    shutil.copytree(left, server.project / "copy", symlinks=True)
    server.call("DELETE", f"/runs/{gone}")
    server.call("PATCH", f"/runs/{failed}", {"name": "renamed", "notes": "after the end", "tags": ["keep"]})
    server.post(f"/runs/{killed}/archive")
    stopped = server.submit("sleep 300", name="stopped")["id"]
    server.wait_for_status(stopped, "running")
    server.post(f"/runs/{stopped}/stop")
    server.wait_for_end(stopped)
    ready = server.post("/runs", {"command": "true", "name": "ready", **common})["id"]
    server.call("PATCH", f"/runs/{ready}", {"notes": "a note", "priority": 4})
    unstarted = server.post("/runs", {"command": "true", "name": "stopped before it began"})["id"]
    orphan = server.submit("true", name="child of the unstarted", after=[unstarted])["id"]
    grandchild = server.post("/runs", {"command": "true", "name": "its child", "after": [orphan]})["id"]
    server.post(f"/runs/{unstarted}/stop")
    doomed = server.submit(f"{gate(server, 'doom')}; exit 1", name="doomed")["id"]
    bereft = server.submit("touch never", name="child of a deleted one", after=[doomed])["id"]
    (server.project / "doom").touch()
    server.wait_for_end(bereft)
    server.call("DELETE", f"/runs/{doomed}")
    running = server.submit(f"{gate(server, 'go')}; exit 4", name="running", **common)["id"]
    second = server.submit(f"{gate(server, 'go')}; exit 5", name="running too", **common)["id"]
    queued = server.submit("exit 6", name="queued", **common)["id"]
    behind = server.submit("exit 7", name="behind", after=[second])["id"]
    for run_id in (running, second):
        server.wait_for_status(run_id, "running")
    server.call("PATCH", f"/runs/{running}", {"notes": "while it runs"})
    before = {run["id"]: run for run in server.all_runs()}
    order = [run["id"] for run in server.all_runs()]
    server.kill()
    remove_database(server)
    shutil.move(server.project / "copy", left)  # as if the kill had come before the deleted run's files were removed
    server.start()
    after = {run["id"]: run for run in server.all_runs()}
    assert {run_id: facts(run) for run_id, run in after.items()} == {i: facts(run) for i, run in before.items()}
    assert [run["id"] for run in server.all_runs()] == order
    for run_id in (finished, failed, killed, stopped, unstarted, orphan, grandchild, bereft, ready, queued, behind):
        assert ending(after[run_id]) == ending(before[run_id]), before[run_id]["name"]
    assert {after[run_id]["status"] for run_id in (running, second)} == {"running"}
    assert server.get(f"/sweeps/{sweep['id']}")["parallel"] == 2
    (server.project / "go").touch()
    for run_id, code in ((running, 4), (second, 5), (queued, 6)):
        assert server.wait_for_end(run_id)["exit_code"] == code
    assert server.wait_for_end(behind)["status_reason"] == "dependency_failed"
    assert server.wait_for_end(server.post(f"/runs/{ready}/start")["id"])["status"] == "finished"
    assert not (server.project / "never").exists()


def older_copy(server: LiveServer) -> None:
    """Replace the database by an older copy, as a user who restores an earlier day does."""
    remove_database(server)
    shutil.copy(server.project / "older.db", server.state / "labwright.db")


def without_log(server: LiveServer) -> None:
    (server.state / "labwright.db-wal").unlink()


@pytest.mark.parametrize("harm", [older_copy, without_log])
def test_runs_missing_in_the_database_are_added_from_their_folders(
    make_server: Callable[..., LiveServer], harm: Callable[[LiveServer], None]
) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="2").start()
    first = server.wait_for_end(server.submit("exit 3")["id"])
    with contextlib.closing(sqlite3.connect(server.state / "labwright.db")) as database:
        database.execute("VACUUM INTO ?", [str(server.project / "older.db")])
    going = [server.submit(f"echo x >> ran; {gate(server, 'go')}; exit {code}")["id"] for code in (4, 5, 6)]
    for run_id in going[:2]:
        server.wait_for_status(run_id, "running")
    server.kill()
    harm(server)
    server.start()
    (server.project / "go").touch()
    assert [server.wait_for_end(run_id)["exit_code"] for run_id in going] == [4, 5, 6]
    assert ending(server.run(first["id"])) == ending(first)
    assert (server.project / "ran").read_text() == "x\n" * 3
    assert len(server.all_runs()) == 4
    epoch = server.get("/events?limit=1")[0]["epoch"]
    server.restart()
    assert server.get("/events?limit=1")[0]["epoch"] == epoch, "once is enough"


def test_backups_are_limited_and_restore_what_folders_do_not_hold(
    make_server: Callable[..., LiveServer],
) -> None:
    server = make_server(LABWRIGHT_BACKUP_MINUTES="0.001", LABWRIGHT_BACKUPS_KEPT="2").start()
    run = server.wait_for_end(server.submit("true")["id"])["id"]
    alert = server.post(f"/runs/{run}/alerts", {"message": "m", "choices": ["ignore"]})["id"]
    server.post(f"/alerts/{alert}/respond", {"choice": "ignore"})
    server.post("/cluster", {"type": "cpu_only", "max_parallel": 5})

    def backed_up() -> bool:
        newest = sorted((server.state / "backups").glob("*.db"))
        return bool(newest) and b"ignore" in newest[-1].read_bytes() and b"cpu_only,5" in newest[-1].read_bytes()

    wait_until(backed_up, "a backup with the answer in it")
    later = server.wait_for_end(server.submit("exit 8")["id"])["id"]
    assert len(list((server.state / "backups").glob("*.db"))) <= 3
    server.kill()
    (server.state / "labwright.db").write_bytes(b"damaged" * 1000)
    newest = max((server.state / "backups").glob("*.db"))
    (server.state / "backups" / "labwright-99990101T000000Z.db").write_bytes(b"a bad backup")
    result = rebuild(ProjectPaths(server.project))
    assert result.backup == newest.name
    server.start()
    assert server.get(f"/alerts?run_id={run}")[0]["answer"] == "ignore"
    assert server.run(later)["exit_code"] == 8
    assert server.get("/cluster")["cluster"]["recommended"]["max_parallel"] == 5


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
nas:/home /home nfs4 rw,vers=4.2 0 0
nas:/my\\040data /mnt/my\\040data nfs rw 0 0
nas:/ü /mnt/ü cifs rw 0 0
/dev/sdb1 /home/me/local xfs rw 0 0
me@host: /home/me/remote fuse.sshfs rw 0 0
tmpfs /homework tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("/home/me/project", True),
        ("/home", True),
        ("/home/me/local/project", False),
        ("/home/me/remote/x", True),
        ("/homework/project", False),
        ("/mnt/my data/project", True),
        ("/mnt/ü/project", True),
        ("/srv", False),
    ],
)
def test_network_file_system_is_recognized_by_its_mount(path: str, network: bool) -> None:
    assert machine.is_network(Path(path), MOUNTS) is network


def test_database_can_be_elsewhere_and_the_project_points_to_it(
    make_server: Callable[..., LiveServer], tmp_path: Path
) -> None:
    server = make_server(LABWRIGHT_STATE_DIR="~/local-state")
    server.environment["HOME"] = str(tmp_path)
    server.start()
    run = server.wait_for_end(server.submit("exit 2")["id"])
    assert not (server.state / "labwright.db").exists()
    pointed = ProjectPaths(server.project).database
    assert pointed.is_relative_to(tmp_path / "local-state")
    assert pointed.exists()
    assert pointed.stat().st_mode & 0o077 == 0
    server.environment.pop("LABWRIGHT_STATE_DIR")
    server.restart()
    assert ending(server.run(run["id"])) == ending(run)
    server.kill()
    for path in pointed.parent.iterdir():  # another machine, without that folder
        path.unlink()
    pointed.parent.rmdir()
    server.start()
    assert ending(server.run(run["id"])) == ending(run)


@pytest.fixture
def elsewhere(make_server: Callable[..., LiveServer], tmp_path: Path) -> LiveServer:
    """A server with one run, whose database is outside the project."""
    server = make_server(LABWRIGHT_STATE_DIR=str(tmp_path / "machine-a")).start()
    server.wait_for_end(server.submit("exit 2")["id"])
    return server


def test_project_with_database_elsewhere_has_no_sockets_or_fifos(elsewhere: LiveServer) -> None:
    kinds = {path.name: path.lstat().st_mode for path in elsewhere.project.rglob("*")}
    assert [name for name, mode in kinds.items() if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)] == []


def test_copy_of_a_project_with_database_elsewhere_gets_its_own(elsewhere: LiveServer) -> None:
    waits = elsewhere.submit("echo >> began", auto_start=False)["id"]
    copy = LiveServer(elsewhere.project.with_name("copy"), **elsewhere.environment)
    shutil.copytree(elsewhere.project, copy.project, symlinks=True, ignore=shutil.ignore_patterns("wake"))
    before = elsewhere.all_runs()
    try:
        copy.start()
        copy.wait_for_end(copy.submit("true", name="of the copy")["id"])
        assert len(copy.all_runs()) == len(before) + 1
    finally:
        copy.stop()
    assert elsewhere.all_runs() == before
    assert elsewhere.run(waits)["status"] == "ready"


def test_project_with_database_elsewhere_can_be_moved(elsewhere: LiveServer) -> None:
    made = elsewhere.post("/memories", {"text": "in no folder"})
    elsewhere.kill()
    moved = LiveServer(elsewhere.project.with_name("moved"), **elsewhere.environment)
    elsewhere.project.rename(moved.project)
    try:
        moved.start()
        assert [run["exit_code"] for run in moved.all_runs()] == [2]
        assert made["id"] in [memory["id"] for memory in moved.get("/memories")]
    finally:
        moved.stop()


def test_database_outdated_by_another_machine_is_rebuilt(elsewhere: LiveServer, tmp_path: Path) -> None:
    here, there = tmp_path / "machine-a", tmp_path / "kept"
    made = elsewhere.post("/memories", {"text": "in no folder"})
    elsewhere.stop()
    here.rename(there)  # another machine, without that folder
    elsewhere.start()
    elsewhere.wait_for_end(elsewhere.submit("exit 3")["id"])
    elsewhere.stop()
    shutil.rmtree(here)
    there.rename(here)  # back on the first machine
    elsewhere.start()
    assert sorted(run["exit_code"] for run in elsewhere.all_runs()) == [2, 3]
    assert made["id"] in [memory["id"] for memory in elsewhere.get("/memories")]


def test_machine_without_room_for_the_database_reports_it(elsewhere: LiveServer, tmp_path: Path) -> None:
    elsewhere.stop()
    shutil.rmtree(tmp_path / "machine-a")
    (tmp_path / "machine-a").touch()
    said = try_to_start(elsewhere).stderr
    assert "folder for the database" in said and "state_dir" in said


@pytest.mark.parametrize("left", [b"", b"\0\0\0", b"half/a/path", b"/a/labwright.db\n{", b'/a\n"e"\n"p"\n1'])
def test_invalid_database_pointer_is_reported_and_unchanged(tmp_path: Path, left: bytes) -> None:
    paths = prepare_state(tmp_path)
    paths.database_pointer.write_bytes(left)
    with pytest.raises(StorageFailed, match=r"database\.path does not say") as caught:
        place_database(paths, str(tmp_path / "elsewhere"))
    assert "delete it" in caught.value.hint
    with pytest.raises(StorageFailed):  # as for labwright doctor
        place_of(paths)
    assert paths.database_pointer.read_bytes() == left


def test_stop_without_changes_makes_no_backup(elsewhere: LiveServer) -> None:
    """Otherwise ten useless starts would push out all other backups."""
    elsewhere.stop()
    before = newest_backups(elsewhere.state / "backups")
    elsewhere.start()
    elsewhere.stop()
    assert newest_backups(elsewhere.state / "backups") == before != []


def test_new_project_does_not_find_the_previous_database(elsewhere: LiveServer) -> None:
    elsewhere.stop()
    shutil.rmtree(elsewhere.state)
    elsewhere.start()
    assert elsewhere.all_runs() == []


def test_local_folder_is_not_in_a_home_on_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    mounts = f"disk / ext4 rw 0 0\nserver:/home {home} nfs4 rw 0 0\n"
    assert local_folder(mounts="disk / ext4 rw 0 0\n") == home / ".local/state/labwright"
    folder = local_folder(mounts, tmp_path)
    assert folder.parent == tmp_path and folder.stat().st_mode & 0o077 == 0
    folder.chmod(0o755)
    with pytest.raises(StorageFailed, match="is not private"):
        local_folder(mounts, tmp_path)
