"""Write a project's whole history into one file, with or without a running server. `restore.py` reads it back.

The copy of the database comes first, so that the folders are never older than it. Secrets are left out.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid, StorageFailed
from labwright.paths import ProjectPaths, RunPaths
from labwright.version import __version__

SEAL = "backup.json"  # the last entry: without it the file is truncated or not a backup
_FAST = 1  # gzip level: higher ones save a few percent and take several times as long


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    path: str
    files: int
    bytes: int
    made_at: str
    version: str = __version__


def carried(paths: ProjectPaths) -> tuple[Path, ...]:
    """Return what is copied unchanged. The journal comes before the folders, which hold newer facts of a run."""
    return (
        paths.journal,
        paths.sweeps,
        paths.arrays,
        paths.plans,
        paths.wild,
        paths.runs,
        paths.skills,
        paths.snapshots,
        paths.environments,
        paths.spending,
        paths.gpu_history,
    )


def archive(paths: ProjectPaths, database: Path, target: Path) -> Archived:
    """Write the archive to a temporary name and rename it, so that a kill leaves no incomplete backup."""
    if target.exists():
        raise Conflict(f"{target} exists already.", hint="Choose another name; a backup never overwrites a file.")
    if not target.parent.is_dir():
        raise Invalid(f"There is no folder {target.parent}.", hint="Create it, or choose another folder.")
    if target.resolve().is_relative_to(paths.state.resolve()):
        raise Invalid(f"{target} is inside the folder to back up.", hint=f"Choose a place outside of {paths.state}.")
    aside = target.with_name(f"{target.name}.part")
    try:
        with _new_file(aside, target) as file:
            made = _write(paths, database, target, file)
            file.flush()
            os.fsync(file.fileno())
            aside.rename(target)
    except OSError as error:
        raise StorageFailed(f"{target} cannot be written: {error.strerror or error}.") from error
    return made


@contextlib.contextmanager
def _new_file(aside: Path, target: Path) -> Iterator[BinaryIO]:
    """Create a new file, never open an existing one: another user may have put it there to read it."""
    with contextlib.suppress(FileNotFoundError):
        leftover = os.open(aside, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _lock(leftover, aside, target)  # nobody holds the lock of a file that a kill left behind
            aside.unlink()
        finally:
            os.close(leftover)
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        _lock(file.fileno(), aside, target)
        try:
            yield file
        except OSError:
            aside.unlink(missing_ok=True)  # an incomplete backup would only fill the disk
            raise


def _lock(fd: int, aside: Path, target: Path) -> None:
    taken = Conflict(f"{target} is being written already.", hint="Wait for it, or choose another name.")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise taken from None
    is_same_file = aside.exists() and os.path.samestat(os.fstat(fd), aside.lstat())
    if not is_same_file:  # the process that had the lock has finished
        raise taken


def _write(paths: ProjectPaths, database: Path, target: Path, file: BinaryIO) -> Archived:
    files = size = 0
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=_FAST, format=tarfile.PAX_FORMAT) as tar:
        for path in chain([database], chain.from_iterable(map(_below, carried(paths)))):
            added = _add(tar, path, str(path.relative_to(paths.state)))
            files, size = files + (added is not None), size + (added or 0)
        made = Archived(path=str(target), files=files, bytes=size, made_at=now())
        seal = json.dumps({**asdict(made), "project": str(paths.project)}).encode()
        info = tarfile.TarInfo(SEAL)
        info.size = len(seal)
        tar.addfile(info, io.BytesIO(seal))
    return made


def _below(path: Path) -> Iterator[Path]:
    """Yield a folder before its content, and `exit.json` first: if it is there, the rest of the run is complete."""
    if not path.is_dir() or path.is_symlink():
        if path.is_symlink() or path.is_file():
            yield path
        return
    yield path
    names: list[str] = []
    with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
        names = os.listdir(path)
    for name in sorted(names, key=lambda name: (name != _EXIT, name)):
        if name != _SECRETS and not name.endswith(".new"):
            yield from _below(path / name)


_EXIT, _SECRETS = (os.path.basename(name) for name in (RunPaths("").exit, RunPaths("").secrets))


def _add(tar: tarfile.TarFile, path: Path, name: str) -> int | None:
    """Return the bytes that were added, or None if the file was deleted: the server may be running."""
    info = tarfile.TarInfo(name)
    try:
        status = path.lstat()
        info.mode, info.mtime = stat.S_IMODE(status.st_mode), status.st_mtime
        if stat.S_ISREG(status.st_mode):
            with path.open("rb") as file:
                info.size = os.fstat(file.fileno()).st_size
                tar.addfile(info, _FixedSize(file, info.size))
            return info.size
        info.type = tarfile.DIRTYPE if stat.S_ISDIR(status.st_mode) else tarfile.SYMTYPE
        info.linkname = os.readlink(path) if info.issym() else ""
    except FileNotFoundError:
        return None
    tar.addfile(info)
    return 0


class _FixedSize(io.RawIOBase):
    """A fixed number of bytes of a file that may change meanwhile: cut if it grows, filled up if it shrinks."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._read: Callable[[int], bytes] = file.read
        self._left = size

    def read(self, size: int = -1) -> bytes:
        count = self._left if size < 0 else min(size, self._left)
        self._left -= count
        return self._read(count).ljust(count, b"\0")
