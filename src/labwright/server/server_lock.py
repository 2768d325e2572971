"""One server per project: enforced by a lock on this host, and by the heartbeat across hosts."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from typing import Any

from labwright.domain.errors import Conflict
from labwright.files import is_locked, read_json
from labwright.paths import ProjectPaths
from labwright.processes import identity, read_identity

_OTHER_HOST_TIMEOUT_SECONDS = 60.0
_LAST_CHILD_SECONDS = 5.0
_POLL_SECONDS = 0.01


def take_lock(paths: ProjectPaths) -> int:
    """Take the project's lock and return its descriptor. Closing it releases the lock."""
    fd = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _try_lock(fd, paths):
        os.close(fd)
        holder = read_identity(paths.lock)
        raise _already_running({**(holder.to_dict() if holder else {}), **_last_server(paths)})
    other = _last_server(paths)
    elsewhere = other.get("host") not in (None, socket.gethostname())
    beat = other.get("heartbeat")
    if elsewhere and isinstance(beat, int | float) and time.time() - beat < _OTHER_HOST_TIMEOUT_SECONDS:
        os.close(fd)
        raise _already_running(other)
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(identity(os.getpid()).to_dict()).encode(), 0)  # fallback if server.json is missing
    return fd


def _try_lock(fd: int, paths: ProjectPaths) -> bool:
    """Try to take the lock. A killed server may leave a child between fork and exec, which holds it for a moment."""
    deadline = time.monotonic() + _LAST_CHILD_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            holder = read_identity(paths.lock)
            if holder is None or holder.is_alive or time.monotonic() >= deadline:
                return False
        time.sleep(_POLL_SECONDS)


def is_still_ours(lock: int) -> bool:
    """Whether the lock file still exists. If it was deleted, another server can start for this project."""
    return os.fstat(lock).st_nlink > 0


def server_is_up(paths: ProjectPaths) -> bool:
    """Whether a process on this host holds the lock."""
    try:
        return is_locked(paths.lock)
    except OSError:  # no server has run yet, or the file belongs to another user
        return False


def _last_server(paths: ProjectPaths) -> dict[str, Any]:
    try:
        found = read_json(paths.server)
    except (FileNotFoundError, ValueError):  # missing, or cut off by a crash
        return {}
    return found if isinstance(found, dict) else {}


def _already_running(other: dict[str, Any]) -> Conflict:
    where = f"at {other.get('url', 'an unknown address')} on {other.get('host', 'this machine')}"
    return Conflict(
        f"A Labwright server for this project already runs {where} (process {other.get('pid', '?')}).",
        hint="Use that server, or stop it with: labwright down",
    )
