"""The snapshots of a project: `trees/<digest>.json` lists the files, `objects/` holds their content.

Taking a snapshot shares a lock; the garbage collector has it alone. A snapshot without a reference is safe for
`GRACE_SECONDS` after it was taken: the time in which its run is stored in the database.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from labwright.compute.snapshot.diff import compare
from labwright.compute.snapshot.files import (
    Manifest,
    Snapshot,
    SnapshotDiff,
    SnapshotEntry,
    read_steady,
    shown,
    shown_names,
    signature,
)
from labwright.compute.snapshot.tree import Scan, SnapshotTree, hash_only
from labwright.domain.errors import Conflict, NotFound, StorageFailed

GRACE_SECONDS = 120.0
_MAX_ROOTS = 16  # kept in memory; the next snapshot of a dropped one is only slower
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class _Taken:
    """The last snapshot of one tree, and when it was last read from disk."""

    snapshot: Snapshot
    path: str
    touched: float


@dataclass(slots=True)
class _Root:
    tree: SnapshotTree
    lock: threading.Lock = field(default_factory=threading.Lock)
    taken: _Taken | None = None


class SnapshotStore:
    def __init__(
        self, folder: Path, max_file_bytes: int, private: Callable[[], frozenset[str]] = frozenset[str]
    ) -> None:
        """`private` returns the real paths of files that no snapshot and no diff may contain."""
        self.folder = folder
        self._private = private
        self._trees_folder = folder / "trees"
        self._objects = Objects(folder)
        self._limit = max_file_bytes
        self._roots: dict[str, _Root] = {}
        self._roots_lock = threading.Lock()

    def take(self, root: Path) -> Snapshot:
        """Take a snapshot of the files as they are now. Costs microseconds per file if nothing changed."""
        seen = self._root(os.fspath(root))
        with seen.lock:
            if seen.tree.hide(self._private()):
                seen.taken = None
            if taken := seen.taken:
                is_safe = time.monotonic() - taken.touched < GRACE_SECONDS / 2  # from the collector
                if is_safe and signature(taken.path) is not None and seen.tree.is_unchanged(self._clock):
                    return taken.snapshot
            with self._locked(fcntl.LOCK_SH):
                seen.taken = self._take_new(seen.tree)
                return seen.taken.snapshot

    def _root(self, name: str) -> _Root:
        with self._roots_lock:
            if name not in self._roots:
                self._roots[name] = _Root(SnapshotTree(name, self._limit))
                for oldest in list(self._roots)[:-_MAX_ROOTS]:
                    del self._roots[oldest]
            return self._roots[name]

    def _is_handed_out(self, taken: _Taken) -> bool:
        """Return whether it is recent enough to be safe from the collector, and still on disk."""
        return time.monotonic() - taken.touched < GRACE_SECONDS / 2 and signature(taken.path) is not None

    def _take_new(self, tree: SnapshotTree) -> _Taken:
        scan = tree.scan(self._clock(), self._objects.put, self._objects.has)
        data = scan.manifest.to_bytes()
        digest = sha256(data).hexdigest()
        if self._manifest_path(digest).exists():
            os.utime(self._manifest_path(digest))  # restarts its grace period
        else:
            self._objects.write_whole(self._manifest_path(digest), data)
        return _Taken(_summary(digest, scan), str(self._manifest_path(digest)), time.monotonic())

    def _clock(self) -> int:
        """Return the time of the file system, which may be another machine's."""
        self._make_folder()
        os.utime(self.folder)
        return self.folder.stat().st_mtime_ns

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StorageFailed(f"{self.folder} cannot be created: {error.strerror}.") from error

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        self._make_folder()
        fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how)
            yield
        finally:
            os.close(fd)

    def _manifest_path(self, digest: str) -> Path:
        return self._trees_folder / f"{digest}.json"

    def _manifest(self, digest: str) -> Manifest:
        path = self._manifest_path(digest)
        if not _DIGEST.fullmatch(digest) or not path.exists():
            raise NotFound(f"There is no snapshot {digest}.", hint="Its run may have been collected by gc.")
        data = path.read_bytes()
        if sha256(data).hexdigest() != digest:
            raise StorageFailed(f"{path} is damaged.", hint="Delete it; its snapshot cannot be restored.")
        return Manifest.from_bytes(data)

    def has(self, digest: str) -> bool:
        return _DIGEST.fullmatch(digest) is not None and self._manifest_path(digest).exists()

    def check_complete(self, digest: str) -> None:
        """Raise Conflict if a run cannot use this snapshot. Called at its submit, so that the launch does not fail."""
        _check_complete(digest, self._manifest(digest))

    def materialize(self, digest: str, target: Path) -> None:
        """Write the tree to `target`, which must be missing or empty: completely or not at all."""
        with self._locked(fcntl.LOCK_SH):
            manifest = self._manifest(digest)
            _check_complete(digest, manifest)
            if target.is_symlink() or (target.exists() and any(target.iterdir())):
                raise Conflict(f"{target} is not empty.", hint="Use a folder that does not exist.")
            aside = target.with_name(f".{target.name}.{token_hex(4)}")
            aside.mkdir(parents=True)
            try:
                self._write_tree(manifest, aside)
                aside.rename(target)
            except BaseException:
                shutil.rmtree(aside)
                raise

    def _write_tree(self, manifest: Manifest, target: Path) -> None:
        # Links last, so that nothing is written through one.
        for entry in sorted(manifest.entries, key=lambda entry: (entry.is_link, entry.path)):
            path = target / entry.path
            path.parent.mkdir(parents=True, exist_ok=True)
            data = self._objects.get(entry.hash or "")
            if entry.is_link:
                path.symlink_to(os.fsdecode(data))
            else:
                path.write_bytes(data)
                path.chmod(stat.S_IMODE(entry.mode))

    def diff(self, digest: str, root: Path) -> SnapshotDiff:
        """Return what changed since the snapshot, by content. Nothing is stored."""
        tree = SnapshotTree(os.fspath(root), self._limit)
        tree.hide(self._private())
        new = tree.scan(self._clock(), hash_only, lambda _: True).manifest
        old = tree.without_hidden(self._manifest(digest))  # a file may have become private later
        with self._locked(fcntl.LOCK_SH):
            read_new = partial(_read_current, tree.root)
            return compare(old, new, lambda entry: self._objects.get(entry.hash or ""), read_new)

    def size(self) -> int:
        return sum(_size_of(path) for path in [*self._manifest_files(), *self._object_files()])

    def digests(self) -> list[str]:
        return sorted(path.stem for path in self._manifest_files())

    def collect(self, keep: set[str], *, grace_seconds: float = GRACE_SECONDS, dry_run: bool = False) -> int:
        """Delete everything that neither `keep` nor a recent snapshot uses. Return how many bytes that frees."""
        with self._locked(fcntl.LOCK_EX):
            oldest = self._clock() - int(grace_seconds * 1e9)
            stale = [
                path for path in self._manifest_files() if path.stem not in keep and path.stat().st_mtime_ns <= oldest
            ]
            digests = set(self.digests()) - {path.stem for path in stale}
            kept = {entry.hash for digest in digests for entry in self._manifest(digest).entries}
            # Trees first: after a kill, the next collection finds objects without a tree.
            unused = [path for path in self._object_files() if path.name not in kept]
            freed = 0
            for path in [*stale, *unused, *self._objects.leftovers()]:
                freed += _size_of(path)
                if not dry_run:
                    path.unlink()
            return freed

    def _manifest_files(self) -> list[Path]:
        return list(self._trees_folder.glob("*.json"))

    def _object_files(self) -> list[Path]:
        return list(self._objects.folder.glob("??/*"))


def _summary(digest: str, scan: Scan) -> Snapshot:
    entries = scan.manifest.entries
    return Snapshot(
        hash=digest,
        git_commit=scan.listing.commit,
        dirty=scan.listing.dirty,
        files=len(entries),
        bytes=sum(entry.size for entry in entries if entry.hash),
        skipped=shown_names([entry.path for entry in entries if entry.hash is None]),
        partial=scan.manifest.partial,
        notes=tuple(shown(note) for note in scan.listing.notes),
    )


def _check_complete(digest: str, manifest: Manifest) -> None:
    missing = [entry.path for entry in manifest.entries if entry.hash is None]
    if missing:
        raise Conflict(
            f"Snapshot {digest[:12]} lacks files that were too big to keep or unreadable: "
            f"{', '.join(shown_names(missing))}.",
            hint="Ignore them in .gitignore, or raise snapshot_file_mb, and submit again.",
        )
    if manifest.partial:
        raise Conflict(
            f"Snapshot {digest[:12]} is partial: the folder held too many files.",
            hint="Ignore data folders in .gitignore and submit again.",
        )


def _read_current(root: str, entry: SnapshotEntry) -> bytes | None:
    """Return the content of a file now, or None if it vanished since it was listed."""
    path = f"{root}/{entry.path}"
    try:
        return os.fsencode(Path(path).readlink()) if entry.is_link else read_steady(path, entry.size)[1]
    except OSError:
        return None


def _size_of(path: Path) -> int:
    return path.lstat().st_size


_RAW, _ZLIB = b"r", b"z"
_SAMPLE_BYTES = 64 * 1024


class Objects:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "objects"
        self._prefix = str(self.folder)  # `has` is called for every file
        self._incoming = folder / "incoming"

    def put(self, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        if not self.has(digest):
            self.write_whole(self._path(digest), pack(data))
        return digest

    def has(self, digest: str) -> bool:
        seen = signature(f"{self._prefix}/{digest[:2]}/{digest}")
        return seen is not None and seen[2] > 0

    def get(self, digest: str) -> bytes:
        try:
            data = unpack(self._path(digest).read_bytes())
        except FileNotFoundError as error:
            raise NotFound(f"The snapshot's object {digest} is missing.") from error
        except (zlib.error, ValueError) as error:
            raise self._damaged(digest) from error
        if sha256(data).hexdigest() != digest:
            raise self._damaged(digest)
        return data

    def _damaged(self, digest: str) -> StorageFailed:
        path = self._path(digest)
        return StorageFailed(f"{path} is damaged.", hint="Delete it; the next run with that file writes it again.")

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest

    def write_whole(self, target: Path, data: bytes) -> None:
        """Write to a temporary file and rename it. Its random name keeps two processes apart."""
        aside = self._incoming / secrets.token_hex(8)
        try:
            try:
                _place(aside, target, data)
            except FileNotFoundError:  # the first in its folder
                for folder in (aside.parent, target.parent):
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _place(aside, target, data)
        except OSError as error:
            if aside.is_file():
                aside.unlink()
            raise StorageFailed(f"{target} cannot be written: {error.strerror}.") from error

    def leftovers(self) -> list[Path]:
        """Return files that killed writers left. Call it only while nobody writes."""
        return list(self._incoming.iterdir()) if self._incoming.is_dir() else []


def _place(aside: Path, target: Path, data: bytes) -> None:
    aside.write_bytes(data)
    aside.replace(target)


def pack(data: bytes) -> bytes:
    """Compress if that helps, judged by the first bytes: media and weights do not shrink, and trying takes long."""
    head = zlib.compress(data[:_SAMPLE_BYTES], 1)
    if len(head) >= len(data[:_SAMPLE_BYTES]) * 0.95:
        return _RAW + data
    return _ZLIB + (head if len(data) <= _SAMPLE_BYTES else zlib.compress(data, 1))


def unpack(stored: bytes) -> bytes:
    kind, body = stored[:1], stored[1:]
    if kind not in (_RAW, _ZLIB):
        raise ValueError("not packed by Labwright")
    return zlib.decompress(body) if kind == _ZLIB else body
