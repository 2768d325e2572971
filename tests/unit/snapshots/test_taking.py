"""A snapshot is the project's code as submitted: correct, shared, complete, and restorable."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from labwright.compute.snapshot import SnapshotStore, tree
from labwright.domain.errors import Conflict, NotFound, StorageFailed
from tests.support.snapshots import MB, ODD_NAMES, assert_whole, object_files, paths, paths_in, settle, write


def test_identical_trees_share_one_digest_and_objects(tmp_path: Path, store: SnapshotStore) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, {"train.py": "print(1)\n", "lib/model.py": "x = 1\n"})
    first, second = store.take(tmp_path / "one"), store.take(tmp_path / "two")
    assert first == second
    assert len(store.digests()) == 1
    assert len(object_files(store)) == 2


def test_state_folder_is_private_and_created_only_when_needed(project: Path, store: SnapshotStore) -> None:
    assert not store.folder.exists()
    assert (store.size(), store.digests()) == (0, [])
    store.take(project)
    assert store.folder.stat().st_mode & 0o777 == 0o700


def test_empty_folder_has_a_snapshot(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    snapshot = store.take(project)
    assert (snapshot.files, snapshot.bytes, snapshot.git_commit, snapshot.dirty) == (0, 0, None, None)
    store.materialize(snapshot.hash, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_missing_folder_is_reported(project: Path, store: SnapshotStore) -> None:
    with pytest.raises(NotFound, match="no folder"):
        store.take(project / "gone")


def test_without_git_environments_caches_and_state_are_excluded(project: Path, store: SnapshotStore) -> None:
    write(
        project,
        {
            "train.py": "",
            "data/a.csv": "1",
            ".labwright/token": "secret",
            ".venv/x.py": "",
            "myenv/pyvenv.cfg": "",
            "myenv/lib/x.py": "",
            "lib/__pycache__/x.pyc": "",
            "node_modules/x.js": "",
            "cache/CACHEDIR.TAG": "",
        },
    )
    assert paths(store, project) == {"train.py", "data/a.csv"}


def test_sockets_and_fifos_are_left_out(project: Path, store: SnapshotStore) -> None:
    write(project, {"a.py": ""})
    os.mkfifo(project / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(project / "socket"))
        assert paths(store, project) == {"a.py"}


@pytest.fixture(params=[1, 10_000_000, 1_000_000_000], ids=["this kernel", "10 ms", "1 s"])
def tick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a file system with coarser time stamps than the machine's clock."""

    def coarse(info: os.stat_result) -> SimpleNamespace:
        names = [name for name in dir(info) if name.startswith("st_")]
        seen = SimpleNamespace(**{name: getattr(info, name) for name in names})
        seen.st_mtime_ns -= seen.st_mtime_ns % request.param
        seen.st_ctime_ns -= seen.st_ctime_ns % request.param
        return seen

    lstat, fstat = os.lstat, os.fstat
    monkeypatch.setattr(os, "lstat", lambda path: coarse(lstat(path)))
    monkeypatch.setattr(os, "fstat", lambda fd: coarse(fstat(fd)))


@pytest.mark.usefixtures("tick")
def test_edit_of_equal_size_in_the_same_tick_is_noticed(project: Path, store: SnapshotStore) -> None:
    seen = set()
    for number in range(200):
        (project / "train.py").write_text(f"{number:05d}")
        seen.add(store.take(project).hash)
    assert len(seen) == 200


@pytest.mark.usefixtures("tick")
def test_new_file_in_the_same_tick_is_noticed(project: Path, store: SnapshotStore) -> None:
    for number in range(50):
        write(project, {f"lib/{number}.py": ""})
        assert store.take(project).files == number + 1


def test_edit_with_the_old_time_restored_is_noticed(project: Path, store: SnapshotStore) -> None:
    write(project, {"train.py": "one"})
    before, times = settle(store, project), (project / "train.py").stat()
    write(project, {"train.py": "two"})
    os.utime(project / "train.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert store.take(project).hash != before.hash


def test_touching_a_file_changes_nothing(project: Path, store: SnapshotStore) -> None:
    write(project, {"train.py": "one", "lib/a.py": "a"})
    before = store.take(project)
    os.utime(project / "train.py", (1, 1))
    assert store.take(project) == before


def test_settled_tree_is_not_listed_again(project: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, {"train.py": "one"})
    before = settle(store, project)
    monkeypatch.setattr(tree, "list_tree", None)
    assert store.take(project) is not None
    assert store.take(project) == before


@pytest.mark.parametrize("change", ["add", "remove", "chmod", "rename", "replace", "link"])
def test_every_kind_of_change_in_a_subfolder_is_noticed(project: Path, store: SnapshotStore, change: str) -> None:
    write(project, {"a/b/one.py": "1", "a/b/two.py": "2"})
    os.utime(project / "a" / "b", (1, 1))
    before = settle(store, project)
    here = project / "a" / "b"
    {
        "add": lambda: (here / "three.py").write_text("3"),
        "remove": lambda: (here / "one.py").unlink(),
        "chmod": lambda: (here / "one.py").chmod(0o755),
        "rename": lambda: (here / "one.py").rename(here / "uno.py"),
        "replace": lambda: (here / "two.py").replace(here / "one.py"),
        "link": lambda: (here / "link").symlink_to("one.py"),
    }[change]()
    assert store.take(project).hash != before.hash


def test_file_in_a_formerly_empty_folder_is_noticed(project: Path, store: SnapshotStore) -> None:
    (project / "empty").mkdir()
    settle(store, project)
    write(project, {"empty/new.py": "1"})
    assert paths(store, project) == {"empty/new.py"}


def test_linked_root_follows_its_target(tmp_path: Path, store: SnapshotStore) -> None:
    write(tmp_path, {"one/a.py": "1", "two/b.py": "2"})
    (tmp_path / "link").symlink_to("one")
    settle(store, tmp_path / "link")
    assert paths(store, tmp_path / "link") == {"a.py"}
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("two")
    assert paths(store, tmp_path / "link") == {"b.py"}


def test_snapshot_restores_modes_links_and_odd_names(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    for name in ODD_NAMES:
        Path(os.fsdecode(os.fsencode(project) + b"/" + name)).write_bytes(name * 3)
    write(project, {"run.sh": "#!/bin/sh\n", "private": "k", "sub/data.txt": "d", "empty": ""})
    (project / "run.sh").chmod(0o755)
    (project / "private").chmod(0o600)
    (project / "link").symlink_to("sub/data.txt")
    (project / "out").symlink_to("/etc")
    (project / "dangling").symlink_to(os.fsdecode(b"nowhere-\xff"))
    (project / "noise").write_bytes(os.urandom(200_000))
    snapshot = store.take(project)
    store.materialize(snapshot.hash, tmp_path / "restored")
    assert store.take(tmp_path / "restored").hash == snapshot.hash
    assert (tmp_path / "restored" / "private").stat().st_mode & 0o777 == 0o600
    assert os.readlink(tmp_path / "restored" / "out") == "/etc"
    assert not store.diff(snapshot.hash, tmp_path / "restored").text


def test_odd_names_survive_any_encoder(project: Path, store: SnapshotStore) -> None:
    (project / os.fsdecode(b"big-\xff")).write_bytes(b"x" * (MB + 1))
    snapshot = store.take(project)
    assert snapshot.skipped == ("big-\\xff",)
    json.dumps(snapshot.to_dict(), ensure_ascii=False).encode("utf-8")


def test_restore_needs_an_empty_folder_and_a_known_digest(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"a.py": "1"})
    digest = store.take(project).hash
    with pytest.raises(Conflict, match="not empty"):
        store.materialize(digest, project)
    for wrong in ("0" * 64, "../../../etc/passwd", ""):
        with pytest.raises(NotFound):
            store.materialize(wrong, tmp_path / "out")


def test_damaged_object_is_never_restored(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"a.py": "1" * 100})
    digest = store.take(project).hash
    object_files(store)[0].write_bytes(b"rwrong")
    with pytest.raises(StorageFailed, match="damaged"):
        store.materialize(digest, tmp_path / "out")
    assert list(tmp_path.glob("*out*")) == []


def test_file_above_the_limit_is_recorded_but_not_stored(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"train.py": "1", "weights.bin": "w" * (MB + 1)})
    snapshot = store.take(project)
    assert (snapshot.skipped, snapshot.files, snapshot.bytes) == (("weights.bin",), 2, 1)
    with pytest.raises(Conflict, match=r"weights\.bin"):
        store.materialize(snapshot.hash, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    write(project, {"weights.bin": "w" * (MB + 2)})
    assert store.take(project).hash != snapshot.hash


def test_too_many_files_make_a_partial_snapshot_that_keeps_the_top_folders(
    project: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tree, "MAX_FILES", 10)
    write(project, {f"data/deep/{number}.txt": "" for number in range(30)} | {"train.py": "1"})
    snapshot = store.take(project)
    assert snapshot.partial
    assert snapshot.files == 10
    assert "train.py" in paths_in(store, snapshot.hash)
    with pytest.raises(Conflict, match="partial"):
        store.materialize(snapshot.hash, tmp_path / "out")


def test_too_many_bytes_keep_the_small_files(
    project: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_BYTES", 1000)
    write(project, {"a-data.txt": "d" * 990, "train.py": "t" * 50})
    snapshot = store.take(project)
    assert (snapshot.partial, snapshot.skipped, snapshot.bytes) == (True, ("a-data.txt",), 50)
    monkeypatch.setattr(tree, "MAX_BYTES", 2000)
    write(project, {"new.py": ""})
    assert store.take(project).skipped == ()


def test_unreadable_file_is_named_and_not_fatal(project: Path) -> None:
    """Runs in a child as another user, because root can read everything."""
    write(project, {"a.py": "1", "secret": "s", "closed/x.py": "1"})
    (project / "secret").chmod(0)
    (project / "closed").chmod(0)
    code = f"""
        import json, os, sys
        from pathlib import Path
        from labwright.compute.snapshot import SnapshotStore
        store = SnapshotStore(Path({str(project)!r}) / ".labwright" / "snapshots", 1000)
        if os.getuid() == 0:
            store.folder.mkdir(parents=True)
            for path in (store.folder, store.folder.parent):
                os.chown(path, 65534, 65534)
            for parent in Path({str(project)!r}).parents:
                if not parent.stat().st_mode & 0o001:  # pytest's own folders are for one user
                    parent.chmod(parent.stat().st_mode | 0o011)
            os.setuid(65534)
        print(json.dumps([store.take(Path({str(project)!r})).to_dict() for _ in range(2)]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, check=True)
    first, second = json.loads(done.stdout)
    assert first == second
    assert first["skipped"] == ["closed", "secret"]
    assert first["files"] == 3


def test_files_that_appear_vanish_and_grow_during_a_snapshot_do_no_harm(project: Path, store: SnapshotStore) -> None:
    write(project, {f"lib/{number}.py": str(number) for number in range(50)})
    stop = threading.Event()

    def stir() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            write(project, {f"lib/t{number % 7}": "x" * number, "log.txt": "line\n" * number})
            (project / f"lib/t{(number + 3) % 7}").unlink(missing_ok=True)

    thread = threading.Thread(target=stir)
    thread.start()
    try:
        for _ in range(30):
            assert store.take(project).files >= 50
    finally:
        stop.set()
        thread.join()
    assert_whole(store)
    settle(store, project)
    assert paths(store, project) == {
        str(path.relative_to(project))
        for path in project.rglob("*")
        if path.is_file() and ".labwright" not in path.parts
    }
