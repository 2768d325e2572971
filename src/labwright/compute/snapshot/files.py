"""Look at one path without being fooled: no link followed, no FIFO waited for, no fresh edit taken as old."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from labwright.compute.snapshot.values import Entry

_SETTLE_NS = 50_000_000  # kernel clocks behind timestamps tick every 1 to 10 ms
_COARSE_SETTLE_NS = 2_100_000_000  # some file systems keep whole seconds, FAT two
_READ_TRIES = 3

Signature = tuple[int, int, int, int, int]  # mode, inode, size, mtime, ctime


@dataclass(frozen=True, slots=True)
class Known:
    """What a file held when it had this signature; `settled` once a later edit must show in the signature."""

    signature: Signature
    entry: Entry
    settled: bool


def signature(path: str) -> Signature | None:
    """None where nothing can be seen."""
    try:
        return _of(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def _of(info: os.stat_result) -> Signature:
    return (info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def all_as_seen(expected: list[tuple[str, Signature]]) -> bool:
    """Whether each path still has its signature. One loop without calls: every submit goes through it."""
    lstat = os.lstat
    try:
        for path, seen in expected:
            info = lstat(path)
            if (info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns) != seen:
                return False
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    return True


def none_there(paths: list[str]) -> bool:
    """By `access`, which answers without the price of an exception."""
    access = os.access
    return not any(access(path, os.F_OK) for path in paths)


def is_settled(seen: Signature, clock: int) -> bool:
    """Whether the last change is older than the granularity of time stamps, as of `clock`.

    Until then a second change may leave the signature as it is (git calls this racily clean).
    """
    changed, window = max(seen[3], seen[4]), _SETTLE_NS if seen[4] % 1_000_000_000 else _COARSE_SETTLE_NS
    return changed + window <= clock


def look(path: str, name: str, clock: int, limit: int, keep: Callable[[bytes], str]) -> Known | None:
    """Hash a file or link through `keep`; None if it vanished or is a socket, FIFO, device or folder."""
    seen = signature(path)
    if seen is None:
        return None
    if stat.S_ISLNK(seen[0]):
        return _look_at_link(path, name, seen, clock, keep)
    if not stat.S_ISREG(seen[0]):
        return None
    if seen[2] > limit:
        return unkept(name, seen)
    return _look_at_file(path, name, seen, clock, limit, keep)


def unkept(name: str, seen: Signature) -> Known:
    """Known by size and time only, which a signature shows exactly."""
    return Known(seen, Entry(name, _mode(seen), seen[2], None, seen[3]), settled=True)


def _look_at_link(path: str, name: str, seen: Signature, clock: int, keep: Callable[[bytes], str]) -> Known | None:
    try:
        target = os.readlink(os.fsencode(path))
    except OSError:  # replaced since; its folder's time stamp brings us back
        return None
    return Known(seen, Entry(name, _mode(seen), len(target), keep(target)), is_settled(seen, clock))


def _look_at_file(
    path: str, name: str, seen: Signature, clock: int, limit: int, keep: Callable[[bytes], str]
) -> Known | None:
    try:
        seen, data = read_steady(path, limit)
    except FileNotFoundError:
        return None
    except OSError:
        # No right to read it, or a bad disk: named as skipped, and tried again next time.
        return Known(seen, Entry(name, _mode(seen), seen[2], None, seen[3]), settled=False)
    if not stat.S_ISREG(seen[0]):
        return None
    if len(data) > limit:
        return unkept(name, seen)
    return Known(seen, Entry(name, _mode(seen), len(data), keep(data)), is_settled(seen, clock))


def read_steady(path: str, limit: int) -> tuple[Signature, bytes]:
    """Read until the file held still meanwhile; one that never does (a growing log) is taken as last read.

    The signature is from before the read, so that the next look sees such a file as changed.
    """
    for _ in range(_READ_TRIES):
        before, data, after = _read_once(path, limit)
        if before == after:
            break
    return before, data


def _read_once(path: str, limit: int) -> tuple[Signature, bytes, Signature]:
    # Non-blocking: a FIFO may have taken the file's place.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb", buffering=0) as file:
        before = _of(os.fstat(fd))
        data = _read_up_to(fd, limit + 1) if stat.S_ISREG(before[0]) else b""
        return before, data, _of(os.fstat(file.fileno()))


def _read_up_to(fd: int, count: int) -> bytes:
    parts: list[bytes] = []
    while count > 0 and (part := os.read(fd, min(count, 1 << 20))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _mode(seen: Signature) -> int:
    return stat.S_IFMT(seen[0]) | (seen[0] & 0o777)  # set-id bits have no place in a copy
