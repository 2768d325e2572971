"""One run a file: a claim on a metric file that two runs of a project cannot both hold without noticing.

Every reader of a file holds a shared lock on the claim; an exclusive one can be had for a moment only by whoever is
alone. Whoever was not alone writes it down, so that the other learns of it too.
"""

from __future__ import annotations

import fcntl
import os

_SHARED = b"shared\n"


class Claim:
    def __init__(self, folder: str, file: os.stat_result) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._fd = _open_locked(_path(folder, file))
        if self._try(fcntl.LOCK_EX):
            os.ftruncate(self._fd, 0)  # nobody else is there; what was noted is of runs that have ended
        else:
            os.pwrite(self._fd, _SHARED, 0)
        self.renew()
        self._try(fcntl.LOCK_SH)

    def renew(self) -> None:
        """The file has grown: runs that began after the claim was made shall see that it is taken."""
        os.utime(self._fd)

    def is_sole(self) -> bool:
        alone = self._try(fcntl.LOCK_EX)
        if not alone:
            os.pwrite(self._fd, _SHARED, 0)
        self._try(fcntl.LOCK_SH)
        return alone and os.fstat(self._fd).st_size == 0

    def _try(self, kind: int) -> bool:
        return _try(self._fd, kind)

    def close(self) -> None:
        os.close(self._fd)


def _open_locked(path: str) -> int:
    """With a shared lock on what the name stands for: an old claim is swept away under an exclusive one."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_SH)  # others hold an exclusive one for a moment only
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)


def _try(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_claimed_since(folder: str, file: os.stat_result, moment: float) -> bool:
    """Whether some run has taken this file as its own since then."""
    try:
        return os.stat(_path(folder, file)).st_mtime >= moment
    except FileNotFoundError:
        return False


def _path(folder: str, file: os.stat_result) -> str:
    return f"{folder}/{file.st_dev}-{file.st_ino}"
