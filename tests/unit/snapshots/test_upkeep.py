"""Snapshots stay complete through kills, concurrent use and garbage collection."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from labwright.compute.snapshot import SnapshotStore
from labwright.compute.snapshot.store import GRACE_SECONDS
from labwright.domain.errors import NotFound, StorageFailed
from tests.support.snapshots import MB, assert_whole, object_files, settle, write

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


def test_killed_process_leaves_no_broken_object(tmp_path: Path, project: Path) -> None:
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
def test_files_left_between_write_and_rename_are_removed_later(tmp_path: Path, project: Path, written: int) -> None:
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


def test_threads_and_processes_can_take_snapshots_at_once(tmp_path: Path) -> None:
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


def test_unwritable_store_is_reported(project: Path, store: SnapshotStore) -> None:
    write(project, {"a.py": "1"})
    store.folder.mkdir(parents=True)
    (store.folder / "incoming").write_text("in the way")
    with pytest.raises(StorageFailed, match="cannot be written"):
        store.take(project)
    (store.folder / "incoming").unlink()
    assert store.take(project).files == 1
    with pytest.raises(StorageFailed, match="cannot be created"):
        SnapshotStore(project / "a.py" / "store", MB).take(project)


def test_collect_frees_unreferenced_snapshots(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"a.py": "a" * 1000, "shared.py": "s"})
    old = store.take(project)
    write(project, {"a.py": "b" * 1000})
    new = store.take(project)
    before = store.size()
    assert store.collect({new.hash}) == 0  # returned a moment ago
    freed = store.collect({new.hash}, grace_seconds=0)
    assert freed > 0
    assert store.size() == before - freed
    assert store.digests() == [new.hash]
    with pytest.raises(NotFound):
        store.materialize(old.hash, tmp_path / "old")
    store.materialize(new.hash, tmp_path / "new")


def test_collected_snapshot_is_written_again_when_retaken(project: Path, store: SnapshotStore, tmp_path: Path) -> None:
    write(project, {"a.py": "1"})
    digest = settle(store, project).hash
    store.collect(set(), grace_seconds=0)
    assert store.take(project).hash == digest
    store.materialize(digest, tmp_path / "out")
    shutil.rmtree(store.folder)
    assert store.take(project).hash == digest
    assert_whole(store)


def test_taking_an_old_snapshot_restarts_its_grace_period(project: Path, store: SnapshotStore) -> None:
    write(project, {"a.py": "1"})
    digest = store.take(project).hash
    long_ago = time.time() - 2 * GRACE_SECONDS
    os.utime(store.folder / "trees" / f"{digest}.json", (long_ago, long_ago))
    SnapshotStore(store.folder, MB).take(project)
    assert store.collect(set()) == 0
    assert store.digests() == [digest]


def test_collect_keeps_referenced_snapshots_during_concurrent_takes(
    project: Path, store: SnapshotStore, tmp_path: Path
) -> None:
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
