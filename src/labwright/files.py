"""Files that survive a kill at any line: whole ones are written aside and renamed, logs are appended to."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

LONGEST_LINE = 16 << 20  # nobody who means well writes a longer one
_PIECE_BYTES = 1 << 20
_SHOWN_BYTES = 200
_REFUSALS = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE])


def is_refusal(error: OSError) -> bool:
    """A disk that is full, read-only, closed to us or away just now, which may pass; what was deleted stays so."""
    return error.errno in _REFUSALS


@contextlib.contextmanager
def passing_refusals() -> Iterator[None]:
    """For what is tried again later, or can do without."""
    try:
        yield
    except OSError as error:
        if not is_refusal(error):
            raise


def write_whole(
    path: str | os.PathLike[str], content: bytes, *, sync: bool = True, aside_in: str | os.PathLike[str] | None = None
) -> None:
    """Readers see the old content or the new, never a part. `sync` also survives a power cut.

    A kill leaves a file beside it, or in `aside_in`, where whatever lies in its folder counts.
    """
    aside = _aside(os.path.join(aside_in, os.path.basename(path)) if aside_in else os.fspath(path))
    _write_aside(aside, content, sync=sync)
    os.replace(aside, path)


def write_new(path: str, content: bytes) -> None:
    """A file that nobody looks at until another one, written whole, says that all is there."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write_all(fd, content)
    finally:
        os.close(fd)


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Whether a process of this host has taken the lock of this file; it is left to it."""
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
    """None where there is no such file."""
    try:
        return os.path.getmtime(path)
    except FileNotFoundError:
        return None


def create_exclusive(path: str, content: bytes) -> bool:
    """Make the file with its content, or learn that somebody else was first; nothing in between is ever seen."""
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
    """The beginning of a line that is longer than it may be; whoever reads it refuses it in words."""


def complete_lines(
    path: str, offset: int, limit: int = 1 << 20, longest: int = LONGEST_LINE
) -> tuple[list[bytes], int]:
    """Some whole lines after `offset`, and where the next ones will begin; half a line is left for later.

    About `limit` bytes; but a single line that is longer is read to its end, since nothing behind it would ever be.
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


def _long_line(file: BinaryIO, offset: int, begun: bytes, longest: int) -> tuple[list[bytes], int]:
    line = begun + file.readline(max(0, longest - len(begun)))
    end = offset + len(line)
    if line.endswith(b"\n"):
        return [line[:-1]], end
    while piece := file.readline(_PIECE_BYTES):
        end += len(piece)
        if piece.endswith(b"\n"):
            return [TooLong(line[:_SHOWN_BYTES])], end
    return [], offset


def all_lines(path: str, offset: int = 0) -> tuple[list[bytes], int]:
    """Every whole line after `offset`, and where the next one will begin."""
    found: list[bytes] = []
    while True:
        lines, end = complete_lines(path, offset)
        if end == offset:
            return found, end
        found += lines
        offset = end


def append_whole(fd: int, block: bytes) -> None:
    """All of it or, on a full disk, nothing. A line that a kill had torn ends first, lest it swallow the next one."""
    before = os.fstat(fd).st_size
    torn = before and os.pread(fd, 1, before - 1) != b"\n"
    try:
        _write_all(fd, b"\n" + block if torn else block)
    except OSError:
        os.ftruncate(fd, before)
        raise


def _aside(path: str) -> str:
    """Each writer's own: two threads may write the same file at the same time."""
    return f"{path}.{os.getpid()}.{threading.get_ident()}.new"


def _write_aside(aside: str, content: bytes, *, sync: bool) -> None:
    """All of it or nothing: what a full disk takes in of it would only make it fuller."""
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
