"""Files that survive a kill at any line: whole ones are written aside and renamed, logs are appended to."""

from __future__ import annotations

import json
import os
from typing import Any


def write_whole(path: str | os.PathLike[str], content: bytes, *, sync: bool = True) -> None:
    """Readers see the old content or the new, never a part. `sync` also survives a power cut."""
    aside = f"{os.fspath(path)}.{os.getpid()}.new"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write_all(fd, content)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(aside, path)


def write_new(path: str, content: bytes) -> None:
    """A file that nobody looks at until another one, written whole, says that all is there."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write_all(fd, content)
    finally:
        os.close(fd)


def write_json(path: str | os.PathLike[str], value: Any, *, sync: bool = True) -> None:
    write_whole(path, json.dumps(value, ensure_ascii=False).encode() + b"\n", sync=sync)


def read_json(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        return json.loads(file.read())


def create_exclusive(path: str, content: bytes) -> bool:
    """Make the file with its content, or learn that somebody else was first; nothing in between is ever seen."""
    aside = f"{path}.{os.getpid()}.new"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write_all(fd, content)
    finally:
        os.close(fd)
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(aside)
    return True


def complete_lines(path: str, offset: int, limit: int = 1 << 20) -> tuple[list[bytes], int]:
    """The whole lines after `offset`, and where the next ones will begin; half a line is left for later."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            block = file.read(limit)
    except FileNotFoundError:
        return [], offset
    end = block.rfind(b"\n") + 1
    return block[:end].splitlines(), offset + end


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
