"""Reserve some disk space, so that the verbs that free space (stop, delete, gc) still work on a full disk."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from labwright.domain.errors import StorageFailed

_BYTES = 4 << 20
_PLENTY = 4 * _BYTES  # with less free space nothing is reserved
_LEAST = 1 << 20  # the files of a new run need that much
_CHECK_SECONDS = 60.0
_FULL = {errno.ENOSPC, errno.EDQUOT}

Result = TypeVar("Result")


class Reserve:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._next_check = 0.0

    @property
    def has_room(self) -> bool:
        """Whether there is free space besides the reserve."""
        try:
            return shutil.disk_usage(self._path.parent).free >= _LEAST
        except FileNotFoundError:  # the state folder was deleted
            return False

    def keep(self) -> None:
        """Reserve the space again, once a minute: it may have been released."""
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + _CHECK_SECONDS
        if self._path.exists() or shutil.disk_usage(self._path.parent).free < _PLENTY:
            return
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(fd, 0, _BYTES)
        except OSError as error:  # the disk is full, or the file system cannot reserve space
            self._path.unlink()
            if error.errno not in {*_FULL, errno.EOPNOTSUPP, errno.EINVAL}:
                raise
        finally:
            os.close(fd)

    def use_if_full(self, act: Callable[[], Result]) -> Result:
        """Call `act`. If the disk is full, release the reserve and call it again. A failed call must change nothing."""
        try:
            return act()
        except (StorageFailed, OSError) as error:
            if not _is_full(error) or not self._path.exists():
                raise
        self._path.unlink(missing_ok=True)
        self._next_check = time.monotonic() + _CHECK_SECONDS
        return act()


def _is_full(error: Exception) -> bool:
    cause = error.__cause__ if isinstance(error, StorageFailed) else error
    if isinstance(cause, sqlite3.Error):
        return cause.sqlite_errorcode == sqlite3.SQLITE_FULL
    return isinstance(cause, OSError) and cause.errno in _FULL
