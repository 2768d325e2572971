"""Values of snapshots, and safe reading of one path: no link followed, no wait for a FIFO, no fresh edit missed."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

_SETTLE_NS = 50_000_000  # kernel clocks behind timestamps tick every 1 to 10 ms
_COARSE_SETTLE_NS = 2_100_000_000  # some file systems keep whole seconds, FAT two
_READ_TRIES = 3

Signature = tuple[int, int, int, int, int]  # mode, inode, size, mtime, ctime


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The content of a file at this signature. `settled`: any later edit changes the signature."""

    signature: Signature
    entry: SnapshotEntry
    settled: bool


def signature(path: str) -> Signature | None:
    """Return the signature, or None if the path is missing or not accessible."""
    try:
        return _signature_of(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def _signature_of(info: os.stat_result) -> Signature:
    return (info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def all_unchanged(expected: list[tuple[str, Signature]]) -> bool:
    """Return whether each path still has its signature. A single loop, because every submit runs it."""
    lstat = os.lstat
    try:
        for path, seen in expected:
            info = lstat(path)
            if (info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns) != seen:
                return False
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    return True


def all_absent(paths: list[str]) -> bool:
    """Return whether no path exists. `access` avoids the cost of an exception."""
    access = os.access
    return not any(access(path, os.F_OK) for path in paths)


def is_settled(seen: Signature, clock: int) -> bool:
    """Return whether the last change is older than the granularity of timestamps at `clock`.

    Until then a second change may not show in the signature (git calls this "racily clean").
    """
    changed, window = max(seen[3], seen[4]), _SETTLE_NS if seen[4] % 1_000_000_000 else _COARSE_SETTLE_NS
    return changed + window <= clock


def read_entry(path: str, name: str, clock: int, limit: int, keep: Callable[[bytes], str]) -> KnownFile | None:
    """Hash a file or link through `keep`. Return None if it vanished or is a socket, FIFO, device or folder."""
    seen = signature(path)
    if seen is None:
        return None
    if stat.S_ISLNK(seen[0]):
        try:
            target = os.readlink(os.fsencode(path))
        except OSError:  # replaced meanwhile; its folder's timestamp shows that
            return None
        return KnownFile(seen, SnapshotEntry(name, _mode(seen), len(target), keep(target)), is_settled(seen, clock))
    if not stat.S_ISREG(seen[0]):
        return None
    return unkept(name, seen) if seen[2] > limit else _read_file(path, name, seen, clock, limit, keep)


def unkept(name: str, seen: Signature) -> KnownFile:
    """Return a file that is known by size and time only."""
    return KnownFile(seen, SnapshotEntry(name, _mode(seen), seen[2], None, seen[3]), settled=True)


def _read_file(
    path: str, name: str, seen: Signature, clock: int, limit: int, keep: Callable[[bytes], str]
) -> KnownFile | None:
    try:
        seen, data = read_steady(path, limit)
    except FileNotFoundError:
        return None
    except OSError:
        # Not readable: reported as skipped, and read again next time.
        return KnownFile(seen, SnapshotEntry(name, _mode(seen), seen[2], None, seen[3]), settled=False)
    if not stat.S_ISREG(seen[0]):
        return None
    if len(data) > limit:
        return unkept(name, seen)
    return KnownFile(seen, SnapshotEntry(name, _mode(seen), len(data), keep(data)), is_settled(seen, clock))


def read_steady(path: str, limit: int) -> tuple[Signature, bytes]:
    """Read again until the file does not change during a read. After some tries (a growing log) use the last read.

    The signature is from before the read, so that the next scan sees such a file as changed.
    """
    for _ in range(_READ_TRIES):
        before, data, after = _read_once(path, limit)
        if before == after:
            break
    return before, data


def _read_once(path: str, limit: int) -> tuple[Signature, bytes, Signature]:
    # Non-blocking: a FIFO may have replaced the file.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb", buffering=0) as file:
        before = _signature_of(os.fstat(fd))
        parts: list[bytes] = []
        count = limit + 1 if stat.S_ISREG(before[0]) else 0
        while count > 0 and (part := file.read(min(count, 1 << 20))):
            parts.append(part)
            count -= len(part)
        return before, b"".join(parts), _signature_of(os.fstat(fd))


def _mode(seen: Signature) -> int:
    return stat.S_IFMT(seen[0]) | (seen[0] & 0o777)  # without set-id bits


MAX_NAMES = 50  # of skipped files: they are stored with every run


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """One path. Without a hash its content is not stored; size and time are used instead."""

    path: str
    mode: int
    size: int
    hash: str | None
    mtime_ns: int | None = None

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    def to_dict(self) -> dict[str, Any]:
        data = {"path": self.path, "mode": f"{self.mode:o}", "hash": self.hash, "size": self.size}
        return data if self.hash else {**data, "mtime_ns": self.mtime_ns}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SnapshotEntry:
        return cls(data["path"], int(data["mode"], 8), data["size"], data["hash"], data.get("mtime_ns"))


@dataclass(frozen=True, slots=True)
class Manifest:
    """Sorted entries: the digest depends on content, paths and modes, not on time or place."""

    entries: tuple[SnapshotEntry, ...]
    partial: bool

    def to_bytes(self) -> bytes:
        # ASCII with escapes: names that are not UTF-8 are lone surrogates, which survive only this way.
        ordered = [entry.to_dict() for entry in sorted(self.entries, key=lambda entry: entry.path)]
        data = {"version": 1, "partial": self.partial, "entries": ordered}
        return json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        loaded = json.loads(data)
        return cls(tuple(SnapshotEntry.from_dict(entry) for entry in loaded["entries"]), loaded["partial"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """`dirty`: the code differs from the commit (a tracked file was changed, or there are untracked files)."""

    hash: str
    git_commit: str | None
    dirty: bool | None
    files: int
    bytes: int
    skipped: tuple[str, ...] = ()  # listed but not stored: too big or not readable
    partial: bool = False  # the tree exceeds the limits on files or bytes
    notes: tuple[str, ...] = ()  # why it is partial, or why git could not be used

    def to_dict(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**facts, "skipped": list(self.skipped), "notes": list(self.notes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDiff:
    """Changes from the snapshot to the current files. `uncertain`: too big to store, so only the time differs."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    uncertain: tuple[str, ...]
    text: str
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        names = ("added", "removed", "changed", "uncertain")
        return {**asdict(self), **{name: list(getattr(self, name)) for name in names}}


def shown(path: str) -> str:
    """Return a name that can be encoded: bytes that are not UTF-8 become escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def shown_names(paths: list[str]) -> tuple[str, ...]:
    names = tuple(shown(path) for path in sorted(paths)[:MAX_NAMES])
    return names if len(paths) <= MAX_NAMES else (*names, f"… and {len(paths) - MAX_NAMES} more")
