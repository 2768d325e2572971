"""Files that tests of snapshots write, and checks on the object store."""

from __future__ import annotations

import json
import time
from hashlib import sha256
from pathlib import Path

from labwright.compute.snapshot import Snapshot, SnapshotStore
from labwright.compute.snapshot.store import unpack

MB = 1024 * 1024
ODD_NAMES = [b"new\nline.py", b'quote".py', b"tab\t.py", b"caf\xc3\xa9.py", b"not-utf8-\xff.py", b" space ", b"-rf"]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def settle(store: SnapshotStore, root: Path) -> Snapshot:
    """Wait until time stamps are old enough to be trusted. After that only watching notices a change."""
    store.take(root)
    time.sleep(0.08)
    return store.take(root)


def paths_in(store: SnapshotStore, digest: str) -> set[str]:
    manifest = json.loads((store.folder / "trees" / f"{digest}.json").read_text())
    return {entry["path"] for entry in manifest["entries"]}


def paths(store: SnapshotStore, root: Path) -> set[str]:
    return paths_in(store, store.take(root).hash)


def object_files(store: SnapshotStore) -> list[Path]:
    return list((store.folder / "objects").glob("??/*"))


def assert_whole(store: SnapshotStore) -> None:
    """Check that every object matches its name and that every tree has all of its objects."""
    for path in object_files(store):
        assert sha256(unpack(path.read_bytes())).hexdigest() == path.name
    for digest in store.digests():
        data = (store.folder / "trees" / f"{digest}.json").read_bytes()
        assert sha256(data).hexdigest() == digest
        for entry in json.loads(data)["entries"]:
            assert entry["hash"] is None or store._objects.has(entry["hash"])
