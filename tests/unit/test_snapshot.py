"""A snapshot is the project's code as submitted: right, shared, whole, and restorable."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from labwright.compute.snapshot import SnapshotStore, diff, listing, tree
from labwright.compute.snapshot.objects import unpack
from labwright.compute.snapshot.store import GRACE_SECONDS
from labwright.domain.errors import Conflict, NotFound, StorageFailed

MB = 1024 * 1024


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def store(project: Path) -> SnapshotStore:
    return SnapshotStore(project / ".labwright" / "snapshots", MB)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def paths_in(store: SnapshotStore, digest: str) -> set[str]:
    manifest = json.loads((store.folder / "trees" / f"{digest}.json").read_text())
    return {entry["path"] for entry in manifest["entries"]}


def paths(store: SnapshotStore, root: Path) -> set[str]:
    return paths_in(store, store.take(root).hash)


def object_files(store: SnapshotStore) -> list[Path]:
    return list((store.folder / "objects").glob("??/*"))


def assert_whole(store: SnapshotStore) -> None:
    """Every object is what its name says, and every tree has all of its objects."""
    for path in object_files(store):
        assert sha256(unpack(path.read_bytes())).hexdigest() == path.name
    for digest in store.digests():
        data = (store.folder / "trees" / f"{digest}.json").read_bytes()
        assert sha256(data).hexdigest() == digest
        for entry in json.loads(data)["entries"]:
            assert entry["hash"] is None or store._objects.has(entry["hash"])


def test_identical_trees_share_one_digest_and_objects(tmp_path: Path, store: SnapshotStore) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, {"train.py": "print(1)\n", "lib/model.py": "x = 1\n"})
    first, second = store.take(tmp_path / "one"), store.take(tmp_path / "two")
    assert first == second
    assert len(store.digests()) == 1
    assert len(object_files(store)) == 2


def test_the_state_folder_is_private_and_made_only_when_needed(project: Path, store: SnapshotStore) -> None:
    assert not store.folder.exists()
    assert (store.size(), store.digests()) == (0, [])
    store.take(project)
    assert store.folder.stat().st_mode & 0o777 == 0o700


def test_an_empty_folder_has_a_snapshot(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    snapshot = store.take(project)
    assert (snapshot.files, snapshot.bytes, snapshot.git_commit, snapshot.dirty) == (0, 0, None, None)
    store.materialize(snapshot.hash, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_is_not_there_is_said_so(project: Path, store: SnapshotStore) -> None:
    with pytest.raises(NotFound, match="no folder"):
        store.take(project / "gone")


def test_without_git_environments_caches_and_state_stay_out(project: Path, store: SnapshotStore) -> None:
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
    """Time stamps of a file system that is coarser than that of the machine."""

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
def test_an_edit_of_equal_size_in_the_same_tick_is_noticed(project: Path, store: SnapshotStore) -> None:
    seen = set()
    for number in range(200):
        (project / "train.py").write_text(f"{number:05d}")
        seen.add(store.take(project).hash)
    assert len(seen) == 200


@pytest.mark.usefixtures("tick")
def test_a_new_file_in_the_same_tick_is_noticed(project: Path, store: SnapshotStore) -> None:
    for number in range(50):
        write(project, {f"lib/{number}.py": ""})
        assert store.take(project).files == number + 1


def test_an_edit_with_the_old_time_put_back_is_noticed(project: Path, store: SnapshotStore) -> None:
    write(project, {"train.py": "one"})
    before, times = store.take(project), (project / "train.py").stat()
    time.sleep(0.1)
    store.take(project)
    write(project, {"train.py": "two"})
    os.utime(project / "train.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert store.take(project).hash != before.hash


def test_touching_a_file_changes_nothing(project: Path, store: SnapshotStore) -> None:
    write(project, {"train.py": "one", "lib/a.py": "a"})
    before = store.take(project)
    os.utime(project / "train.py", (1, 1))
    assert store.take(project) == before


def test_a_settled_tree_is_answered_without_listing_it_again(
    project: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"train.py": "one"})
    before = store.take(project)
    time.sleep(0.1)
    store.take(project)
    monkeypatch.setattr(tree, "list_tree", None)
    assert store.take(project) is not None
    assert store.take(project) == before


@pytest.mark.parametrize("change", ["add", "remove", "chmod", "rename", "replace", "link"])
def test_every_kind_of_change_in_a_subfolder_is_noticed(project: Path, store: SnapshotStore, change: str) -> None:
    write(project, {"a/b/one.py": "1", "a/b/two.py": "2"})
    os.utime(project / "a" / "b", (1, 1))
    store.take(project)
    time.sleep(0.1)
    before = store.take(project)
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


def test_a_file_in_a_folder_that_was_empty_is_noticed(project: Path, store: SnapshotStore) -> None:
    (project / "empty").mkdir()
    store.take(project)
    time.sleep(0.1)
    store.take(project)
    write(project, {"empty/new.py": "1"})
    assert paths(store, project) == {"empty/new.py"}


def test_a_root_that_is_a_link_follows_where_it_points(tmp_path: Path, store: SnapshotStore) -> None:
    write(tmp_path, {"one/a.py": "1", "two/b.py": "2"})
    (tmp_path / "link").symlink_to("one")
    assert paths(store, tmp_path / "link") == {"a.py"}
    time.sleep(0.1)
    assert paths(store, tmp_path / "link") == {"a.py"}
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("two")
    assert paths(store, tmp_path / "link") == {"b.py"}


ODD_NAMES = [b"new\nline.py", b'quote".py', b"tab\t.py", b"caf\xc3\xa9.py", b"not-utf8-\xff.py", b" space ", b"-rf"]


def test_a_snapshot_restores_modes_links_and_odd_names(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
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


def test_a_restore_needs_an_empty_place_and_a_known_digest(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"a.py": "1"})
    digest = store.take(project).hash
    with pytest.raises(Conflict, match="not empty"):
        store.materialize(digest, project)
    for wrong in ("0" * 64, "../../../etc/passwd", ""):
        with pytest.raises(NotFound):
            store.materialize(wrong, tmp_path / "out")


def test_a_damaged_object_is_never_restored(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"a.py": "1" * 100})
    digest = store.take(project).hash
    object_files(store)[0].write_bytes(b"rwrong")
    with pytest.raises(StorageFailed, match="damaged"):
        store.materialize(digest, tmp_path / "out")
    assert list(tmp_path.glob("*out*")) == []


def test_a_file_above_the_limit_is_recorded_and_not_kept(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"train.py": "1", "weights.bin": "w" * (MB + 1)})
    snapshot = store.take(project)
    assert (snapshot.skipped, snapshot.files, snapshot.bytes) == (("weights.bin",), 2, 1)
    with pytest.raises(Conflict, match=r"weights\.bin"):
        store.materialize(snapshot.hash, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    write(project, {"weights.bin": "w" * (MB + 2)})
    assert store.take(project).hash != snapshot.hash


def test_too_many_files_make_a_partial_snapshot_that_keeps_the_top(
    project: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(listing, "MAX_FILES", 10)
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


def test_an_unreadable_file_is_named_and_not_fatal(project: Path) -> None:
    """In a child of another user, as the tests may run as root, who may read everything."""
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


def test_files_that_come_go_and_grow_during_a_take_do_no_harm(project: Path, store: SnapshotStore) -> None:
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
    time.sleep(0.1)
    assert paths(store, project) == {
        str(path.relative_to(project))
        for path in project.rglob("*")
        if path.is_file() and ".labwright" not in path.parts
    }


KILLED = """
    import os, sys
    from pathlib import Path
    from labwright.compute.snapshot import SnapshotStore
    root = Path(sys.argv[1])
    store = SnapshotStore(root.parent / "store", 1000000)
    print("up", flush=True)
    for number in range(100000):
        for name in "abcdef":
            (root / name).write_bytes(os.urandom(20000))
        store.take(root)
"""


def test_a_killed_taker_leaves_no_broken_object(tmp_path: Path, project: Path) -> None:
    for delay in (0.0, 0.003, 0.01, 0.03, 0.1):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), str(project)], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"up\n"
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
        assert_whole(SnapshotStore(tmp_path / "store", MB))


@pytest.mark.parametrize("written", [0, 1, 2])
def test_dying_between_write_and_rename_leaves_nothing_behind_for_good(
    tmp_path: Path, project: Path, written: int
) -> None:
    write(project, {"a.py": "1", "b.py": "2"})
    code = f"""
        import os
        from pathlib import Path
        from labwright.compute.snapshot import SnapshotStore
        real, left = Path.replace, [{written}]
        def replace(self, target):
            if left[0] == 0:
                os._exit(9)
            real(self, target)
            left[0] -= 1
        Path.replace = replace
        SnapshotStore(Path({str(tmp_path / "store")!r}), 1000).take(Path({str(project)!r}))
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)]).returncode == 9
    store = SnapshotStore(tmp_path / "store", MB)
    assert store.digests() == []
    assert len(object_files(store)) == written
    assert len(list((store.folder / "incoming").iterdir())) == 1
    snapshot = store.take(project)
    store.collect({snapshot.hash})
    assert list((store.folder / "incoming").iterdir()) == []
    assert_whole(store)


def test_threads_and_processes_may_take_at_once(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("one", "two", "three")]
    for root in roots:
        write(root, {f"{number}.py": str(number) * 100 for number in range(100)})
    code = """
        import sys, threading
        from pathlib import Path
        from labwright.compute.snapshot import SnapshotStore
        store = SnapshotStore(Path(sys.argv[1]), 1000000)
        def take(root):
            sys.stdout.write(store.take(Path(root)).hash + "\\n")
        threads = [threading.Thread(target=take, args=(root,)) for root in sys.argv[2:] * 3]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "store"), *map(str, roots)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    digests = {line for child in children for line in child.communicate()[0].split()}
    assert [child.returncode for child in children] == [0, 0]
    assert len(digests) == 1
    assert_whole(SnapshotStore(tmp_path / "store", MB))


def test_a_store_that_cannot_be_written_is_said_so(project: Path, store: SnapshotStore) -> None:
    write(project, {"a.py": "1"})
    store.folder.mkdir(parents=True)
    (store.folder / "incoming").write_text("in the way")
    with pytest.raises(StorageFailed, match="cannot be written"):
        store.take(project)
    (store.folder / "incoming").unlink()
    assert store.take(project).files == 1
    with pytest.raises(StorageFailed, match="cannot be made"):
        SnapshotStore(project / "a.py" / "store", MB).take(project)


def test_collect_frees_what_nobody_keeps(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"a.py": "a" * 1000, "shared.py": "s"})
    old = store.take(project)
    write(project, {"a.py": "b" * 1000})
    new = store.take(project)
    before = store.size()
    assert store.collect({new.hash}) == 0  # handed out a moment ago
    freed = store.collect({new.hash}, grace_seconds=0)
    assert freed > 0
    assert store.size() == before - freed
    assert store.digests() == [new.hash]
    with pytest.raises(NotFound):
        store.materialize(old.hash, tmp_path / "old")
    store.materialize(new.hash, tmp_path / "new")


def test_a_collected_snapshot_is_written_anew_when_taken_again(
    project: Path, store: SnapshotStore, tmp_path: Path
) -> None:
    write(project, {"a.py": "1"})
    store.take(project)
    time.sleep(0.1)
    digest = store.take(project).hash
    store.collect(set(), grace_seconds=0)
    assert store.take(project).hash == digest
    store.materialize(digest, tmp_path / "out")
    shutil.rmtree(store.folder)
    assert store.take(project).hash == digest
    assert_whole(store)


def test_a_take_starts_the_grace_of_an_old_snapshot_anew(project: Path, store: SnapshotStore) -> None:
    write(project, {"a.py": "1"})
    digest = store.take(project).hash
    long_ago = time.time() - 2 * GRACE_SECONDS
    os.utime(store.folder / "trees" / f"{digest}.json", (long_ago, long_ago))
    SnapshotStore(store.folder, MB).take(project)
    assert store.collect(set()) == 0
    assert store.digests() == [digest]


def test_collect_keeps_what_is_kept_while_takes_go_on(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"shared.py": "s" * 500, "a.py": "start"})
    kept, stop = store.take(project).hash, threading.Event()
    taken: list[str] = []

    def submit() -> None:
        while not stop.is_set():
            write(project, {"a.py": f"{len(taken) % 5}"})
            taken.append(store.take(project).hash)

    thread = threading.Thread(target=submit)
    thread.start()
    for _ in range(60):
        store.collect({kept}, grace_seconds=0.2)
    stop.set()
    thread.join()
    assert_whole(store)
    store.materialize(kept, tmp_path / "kept")
    store.materialize(taken[-1], tmp_path / "last")
    assert (tmp_path / "kept" / "a.py").read_text() == "start"


def test_a_diff_names_and_shows_what_changed(project: Path, store: SnapshotStore) -> None:
    write(project, {"train.py": "lr = 1\n", "gone.py": "x\n", "same.py": "s\n", "run.sh": "r\n"})
    (project / "photo").write_bytes(b"\0\1\2")
    digest = store.take(project).hash
    write(project, {"train.py": "lr = 2\n", "new.py": "n"})
    (project / "gone.py").unlink()
    (project / "run.sh").chmod(0o755)
    (project / "photo").write_bytes(b"\0\1\3")
    os.utime(project / "same.py", (1, 1))
    found = store.diff(digest, project)
    assert (found.added, found.removed) == (("new.py",), ("gone.py",))
    assert found.changed == ("photo", "run.sh", "train.py")
    assert "-lr = 1\n+lr = 2\n" in found.text
    assert "mode 100644 → 100755" in found.text
    assert "diff photo\n(binary" in found.text
    assert "+n\n\\ No newline" in found.text
    assert not found.truncated


def test_a_diff_is_bounded(project: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MAX_TEXT", 5_000)
    write(project, {f"{number}.py": "old\n" * 300 for number in range(20)} | {"long.csv": "1\n" * 6000})
    digest = store.take(project).hash
    write(project, {f"{number}.py": "new\n" * 300 for number in range(20)} | {"long.csv": "2\n" * 6000})
    found = store.diff(digest, project)
    assert len(found.changed) == 21
    assert found.truncated
    assert len(found.text) < 5_100


def test_a_diff_says_where_only_size_and_time_are_known(project: Path, store: SnapshotStore) -> None:
    write(project, {"same.bin": "a" * (MB + 1), "other.bin": "a" * (MB + 1), "grown.bin": "a" * (MB + 1)})
    digest = store.take(project).hash
    os.utime(project / "other.bin", (1, 1))
    write(project, {"grown.bin": "a" * (MB + 2)})
    found = store.diff(digest, project)
    assert (found.changed, found.uncertain) == (("grown.bin",), ("other.bin",))


def test_a_diff_stores_nothing_and_follows_no_link(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(tmp_path, {"outside/secret.py": "secret\n"})
    write(project, {"lib/secret.py": "public\n"})
    digest = store.take(project).hash
    shutil.rmtree(project / "lib")
    (project / "lib").symlink_to("../outside")
    before = store.size()
    found = store.diff(digest, project)
    assert (found.added, found.removed) == (("lib",), ("lib/secret.py",))
    assert "+secret" not in found.text
    assert store.size() == before
