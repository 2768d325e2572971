"""This machine as a job may use it: cores and memory within container limits, file systems, who else is here."""

from __future__ import annotations

import os
import re
from pathlib import Path

import psutil

NETWORK_FILE_SYSTEMS = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "lustre",
        "gpfs",
        "beegfs",
        "afs",
        "9p",
        "ceph",
        "glusterfs",
        "fuse.sshfs",
        "fuse.glusterfs",
    ]
)
_ESCAPED = re.compile(r"\\([0-7]{3})")  # how the kernel writes a space in a mount point
_CGROUP = Path("/sys/fs/cgroup")
_FIRST_HUMAN_UID = 1000
_NOBODY = 65534


def usable_cores() -> int:
    cores = len(os.sched_getaffinity(0))
    quota = _cgroup_text("cpu.max").split()
    if len(quota) == 2 and quota[0] != "max":
        cores = min(cores, max(1, int(quota[0]) // int(quota[1])))
    return cores


def usable_memory_mb() -> int:
    total = int(psutil.virtual_memory().total)
    limit = _cgroup_text("memory.max").strip()
    if limit.isdigit():
        total = min(total, int(limit))
    return total >> 20


def _cgroup_text(name: str) -> str:
    try:
        return (_CGROUP / name).read_text()
    except OSError:  # no cgroup v2 here, or none of our own
        return ""


def other_people() -> set[str]:
    """Other users with a login or a process here: the sign of a shared machine."""
    own = os.getuid()
    found = {login.name for login in psutil.users()}
    for process in psutil.process_iter(["uids", "username"]):
        uids = process.info["uids"]
        if uids and _FIRST_HUMAN_UID <= uids.real < _NOBODY and uids.real != own:
            found.add(process.info["username"])
    return found - {_own_name()}


def _own_name() -> str:
    return psutil.Process().username()


def file_system_of(path: Path, mounts: str | None = None) -> str:
    """The type of the file system that holds a path, from the longest matching mount point."""
    text = Path("/proc/mounts").read_text() if mounts is None else mounts
    best, kind = "", "unknown"
    for line in text.splitlines():
        _, point, found, *_ = line.split()
        point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), point)
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, found
    return kind


def is_network(path: Path, mounts: str | None = None) -> bool:
    return file_system_of(path, mounts) in NETWORK_FILE_SYSTEMS
