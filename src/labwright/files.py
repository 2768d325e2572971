"""File writing that survives a kill at any line: files are written aside and renamed, logs are appended."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

LONGEST_LINE = 16 << 20  # no legitimate line is longer
_PIECE_BYTES = 1 << 20
_SHOWN_BYTES = 200
_REFUSALS = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE])


def is_refusal(error: OSError) -> bool:
    """Return whether the error may be temporary: the disk is full, read-only, forbidden or unavailable."""
    return error.errno in _REFUSALS


@contextlib.contextmanager
def passing_refusals() -> Iterator[None]:
    """Ignore refusals, for work that is optional or is retried later."""
    try:
        yield
    except OSError as error:
        if not is_refusal(error):
            raise


def write_whole(
    path: str | os.PathLike[str], content: bytes, *, sync: bool = True, aside_in: str | os.PathLike[str] | None = None
) -> None:
    """Write a file atomically: readers see the old or the new content. With `sync` it survives a power failure.

    A kill leaves a temporary file next to it, or in `aside_in` if every file of its own folder matters.
    """
    aside = _aside(os.path.join(aside_in, os.path.basename(path)) if aside_in else os.fspath(path))
    _write_aside(aside, content, sync=sync)
    os.replace(aside, path)


def write_new(path: str, content: bytes) -> None:
    """Write a file that nobody reads until another, atomically written file announces it."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write_all(fd, content)
    finally:
        os.close(fd)


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Return whether a process of this host holds the lock of this file. The lock is not taken."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def write_json(path: str | os.PathLike[str], value: Any, *, sync: bool = True) -> None:
    write_whole(path, json.dumps(value, ensure_ascii=False).encode() + b"\n", sync=sync)


def read_json(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        return json.loads(file.read())


def modified_at(path: str) -> float | None:
    """Return the modification time, or None if there is no such file."""
    try:
        return os.path.getmtime(path)
    except FileNotFoundError:
        return None


def create_exclusive(path: str, content: bytes) -> bool:
    """Create the file with its content and return True, or return False if it already exists. Atomic."""
    aside = _aside(path)
    _write_aside(aside, content, sync=False)
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(aside)
    return True


class TooLong(bytes):
    """The start of a line that is too long. The reader reports it."""


def complete_lines(
    path: str, offset: int, limit: int = 1 << 20, longest: int = LONGEST_LINE
) -> tuple[list[bytes], int]:
    """Return complete lines after `offset`, and the offset of the next one. An incomplete line is left for later.

    Reads about `limit` bytes. A single longer line is read to its end, or it would block all lines after it.
    """
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            block = file.read(limit)
            end = block.rfind(b"\n") + 1
            if not end and len(block) == limit:
                return _long_line(file, offset, block, longest)
    except FileNotFoundError:
        return [], offset
    return block[:end].splitlines(), offset + end


def _long_line(file: BinaryIO, offset: int, start: bytes, longest: int) -> tuple[list[bytes], int]:
    line = start + file.readline(max(0, longest - len(start)))
    end = offset + len(line)
    if line.endswith(b"\n"):
        return [line[:-1]], end
    while piece := file.readline(_PIECE_BYTES):
        end += len(piece)
        if piece.endswith(b"\n"):
            return [TooLong(line[:_SHOWN_BYTES])], end
    return [], offset


def all_lines(path: str, offset: int = 0) -> tuple[list[bytes], int]:
    """Return every complete line after `offset`, and the offset of the next one."""
    found: list[bytes] = []
    while True:
        lines, end = complete_lines(path, offset)
        if end == offset:
            return found, end
        found += lines
        offset = end


def append_whole(fd: int, block: bytes) -> None:
    """Append everything or, on a full disk, nothing. A line that a kill cut short is ended first."""
    before = os.fstat(fd).st_size
    torn = before and os.pread(fd, 1, before - 1) != b"\n"
    try:
        _write_all(fd, b"\n" + block if torn else block)
    except OSError:
        os.ftruncate(fd, before)
        raise


def _aside(path: str) -> str:
    """Return a temporary name of this thread: two threads may write the same file at the same time."""
    return f"{path}.{os.getpid()}.{threading.get_ident()}.new"


def _write_aside(aside: str, content: bytes, *, sync: bool) -> None:
    """Write everything or leave no file: a partial file would only fill a full disk further."""
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write_all(fd, content)
        if sync:
            os.fsync(fd)
    except OSError:
        os.unlink(aside)
        raise
    finally:
        os.close(fd)


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
