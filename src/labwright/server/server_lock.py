"""One server a project: on this host by a lock, across hosts by the other's heartbeat."""

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

_OTHER_HOST_PATIENCE_SECONDS = 60.0
_LAST_CHILD_SECONDS = 5.0
_MOMENT_SECONDS = 0.01


def take_lock(paths: ProjectPaths) -> int:
    """Whoever closes it lets the next one in."""
    fd = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _is_taken(fd, paths):
        os.close(fd)
        holder = read_identity(paths.lock)
        raise _already_running({**(holder.to_dict() if holder else {}), **_last_server(paths)})
    other = _last_server(paths)
    elsewhere = other.get("host") not in (None, socket.gethostname())
    beat = other.get("heartbeat")
    if elsewhere and isinstance(beat, int | float) and time.time() - beat < _OTHER_HOST_PATIENCE_SECONDS:
        os.close(fd)
        raise _already_running(other)
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(identity(os.getpid()).to_dict()).encode(), 0)  # for who misses server.json
    return fd


def _is_taken(fd: int, paths: ProjectPaths) -> bool:
    """A server that was killed may leave a child between fork and exec, which still has the lock: for a moment only."""
    deadline = time.monotonic() + _LAST_CHILD_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            holder = read_identity(paths.lock)
            if holder is None or holder.is_alive or time.monotonic() >= deadline:
                return False
        time.sleep(_MOMENT_SECONDS)


def is_still_ours(lock: int) -> bool:
    """Once its file is deleted, as by `git clean` with the whole state folder, another server can take the project."""
    return os.fstat(lock).st_nlink > 0


def server_is_up(paths: ProjectPaths) -> bool:
    """Whether somebody on this host holds the lock; it is not taken."""
    try:
        return is_locked(paths.lock)
    except OSError:  # none was ever up, or it is another user's
        return False


def _last_server(paths: ProjectPaths) -> dict[str, Any]:
    try:
        found = read_json(paths.server)
    except (FileNotFoundError, ValueError):  # none, or one cut off by a crash: either way it says nothing
        return {}
    return found if isinstance(found, dict) else {}


def _already_running(other: dict[str, Any]) -> Conflict:
    where = f"at {other.get('url', 'an unknown address')} on {other.get('host', 'this machine')}"
    return Conflict(
        f"A Labwright server for this project already runs {where} (process {other.get('pid', '?')}).",
        hint="Use it as it is, or end it with: labwright down",
    )
