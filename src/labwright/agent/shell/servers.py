"""Other servers of this machine: the token in the state folder of each is a person's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from labwright.paths import STATE_DIR, ProjectPaths

_LOCK = ProjectPaths(Path("/")).lock.name


def other_states() -> set[Path]:
    """The state folders whose lock somebody holds, ours among them; none where the kernel does not tell."""
    return {Path(path).parent for pid in _lock_holders() for path in _open_files(pid) if _is_server_lock(path)}


def _is_server_lock(path: str) -> bool:
    return path.endswith(f"/{STATE_DIR}/{_LOCK}")


def _lock_holders() -> set[str]:
    try:
        with open("/proc/locks") as file:
            return {words[4] for line in file if (words := line.split())[1] == "FLOCK"}
    except FileNotFoundError:
        return set()


def _open_files(pid: str) -> Iterator[str]:
    """Of a process that has ended, or is somebody else's, nothing: its state folder is not readable for us either."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            yield from [os.readlink(entry.path) for entry in entries]
    except OSError:
        return
