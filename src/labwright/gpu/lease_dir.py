"""The lease directory of a machine: its mutex, and safe access to files that other users may have planted.

Users cooperate: anyone who can write here can also disturb others. The code does prevent that a planted file makes us
follow a link, write to a foreign file, block, or print control characters.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labwright.domain.errors import LabwrightError

MUTEX_SECONDS = 2.0  # it is normally held for a fraction of a millisecond
_MUTEX = "mutex"
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # non-blocking: a planted FIFO must not block us
_EVERYONES = 0o1777  # every user takes leases; sticky, so that nobody removes another's file
_MAX_BYTES = 16384
_CREATION_WINDOW_SECONDS = 0.2


class LeaseDirError(LabwrightError):
    """The GPU lease directory cannot be used."""

    code = "lease_dir_unusable"
    hint = (
        "Make it a directory that everyone can write to (mode 1777), remove the file that the message names, "
        "or set LABWRIGHT_LEASE_DIR to another directory."
    )


@contextmanager
def locked(path: str, *, create: bool = True) -> Iterator[int]:
    """Yield the directory's descriptor with the mutex held. Every lock in it is taken or tested only here."""
    try:
        directory = _open_directory(path, create)
        try:
            mutex = _take_mutex(directory, create)
            try:
                yield directory
            finally:
                if mutex is not None:
                    unlock(mutex)
        finally:
            os.close(directory)
    except OSError as error:
        name = f" ({error.filename})" if error.filename else ""
        raise LeaseDirError(f"The GPU lease directory {path} cannot be used: {error.strerror}{name}.") from error


def exists(path: str) -> bool:
    """Return whether anyone ever took a lease there."""
    return os.path.lexists(os.path.join(path, _MUTEX))


def check(path: str) -> None:
    """Raise the error that the next lease would raise, as far as it shows without creating anything."""
    if exists(path):
        with locked(path, create=False):
            return
    place = os.path.abspath(path)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK):
        return
    why = "is not writable" if os.path.isdir(place) else "is not a directory"
    raise LeaseDirError(f"The GPU lease directory {path} cannot be used: {place} {why}.")


def open_shared(directory: int, name: str, mode: int = 0o666) -> int:
    """Open a file for reading and writing and create it if missing. Refuse links and special files."""
    for _ in range(100):
        try:
            # Without O_CREAT: fs.protected_regular refuses it on another user's file in a sticky directory.
            return open_plain(directory, name, os.O_RDWR)
        except FileNotFoundError:
            pass
        try:
            return create_plain(directory, name, mode)
        except FileExistsError:
            continue
    raise OSError(errno.EAGAIN, "the file keeps disappearing", name)


def open_plain(directory: int, name: str, flags: int) -> int:
    descriptor = os.open(name, flags | _SAFE, dir_fd=directory)
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.EPERM, "not a regular file with one name", name)
    return descriptor


def create_plain(directory: int, name: str, mode: int) -> int:
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, mode, dir_fd=directory)
    os.fchmod(descriptor, mode)  # regardless of the umask: other users need access
    return descriptor


def open_subdirectory(directory: int, name: str) -> int:
    try:
        os.mkdir(name, dir_fd=directory)
        os.chmod(name, _EVERYONES, dir_fd=directory)
    except FileExistsError:
        pass
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)


def try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(descriptor: int) -> None:
    """Unlock explicitly: a forked process may still have the descriptor, so closing ours would not free it."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_current(directory: int, name: str, descriptor: int) -> bool:
    """Return whether the name still refers to the open file. A lock on a removed file protects nothing."""
    try:
        named = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(descriptor))


def read_object(descriptor: int) -> dict[str, Any]:
    """Read another user's JSON with a size limit. Return an empty dict if it is not an object."""
    try:
        data = json.loads(os.pread(descriptor, _MAX_BYTES, 0))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def write_object(descriptor: int, data: dict[str, Any]) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(data).encode(), 0)


def clean(value: object, limit: int = 100) -> str:
    """Keep only printable text: it is shown in terminals and pages."""
    return "".join(c for c in value[:limit] if c.isprintable()) if isinstance(value, str) else ""


def _open_directory(path: str, create: bool) -> int:
    if create and not os.path.lexists(path):
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        try:
            os.mkdir(path)
            os.chmod(path, _EVERYONES)
        except FileExistsError:
            pass
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _take_mutex(directory: int, create: bool) -> int | None:
    """Take the mutex, or return None after a timeout: a stopped process must not block the whole machine.

    Continuing without it is safe, because each GPU has its own lock. Only the order of the queue may change.
    """
    deadline = time.monotonic() + MUTEX_SECONDS
    descriptor = _open_mutex(directory, create)
    while not (try_lock(descriptor) and is_current(directory, _MUTEX, descriptor)):
        if not is_current(directory, _MUTEX, descriptor):
            os.close(descriptor)
            descriptor = _open_mutex(directory, create)
        if time.monotonic() > deadline:
            os.close(descriptor)
            return None
        time.sleep(0.0005 + time.monotonic_ns() % 2_000_000 / 1e9)  # uneven, so that waiters spread out
    return descriptor


def _open_mutex(directory: int, create: bool) -> int:
    """Open the mutex, with retries: another user's first start creates it in two steps and is not readable between."""
    deadline = time.monotonic() + _CREATION_WINDOW_SECONDS
    while True:
        try:
            return open_shared(directory, _MUTEX) if create else open_plain(directory, _MUTEX, os.O_RDONLY)
        except PermissionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.005)
