"""This machine as jobs may use it: cores and memory within container limits, file systems, other users."""

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
_FIRST_HUMAN_UID = 1000
_NOBODY = 65534


def usable_cores(root: Path = Path("/")) -> int:
    """Return the usable cores by affinity (which a cpuset sets too) and by the quotas of our cgroup and its parents."""
    cores = len(os.sched_getaffinity(0))
    for folder in _cgroup_folders(root, "cpu"):
        version_1 = (_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))
        version_2 = tuple(_text(folder / "cpu.max").partition(" ")[::2])
        for quota, period in (version_1, version_2):
            if quota.isdigit() and period.isdigit() and int(quota) and int(period):
                cores = min(cores, max(1, int(quota) // int(period)))
    return cores


def usable_memory_mb(root: Path = Path("/")) -> int:
    total = int(psutil.virtual_memory().total)
    for folder in _cgroup_folders(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _text(folder / name)
            if limit.isdigit():
                total = min(total, int(limit))
    return total >> 20


def _cgroup_folders(root: Path, controller: str) -> list[Path]:
    """Return our cgroup and its parents, wherever they are mounted: a limit on any of them counts."""
    found: list[Path] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / (controller if controllers else "")
        own = base / path.lstrip("/")
        found += [folder for folder in (own, *own.parents) if folder.is_relative_to(base)]
    return found or [root / "sys/fs/cgroup", root / "sys/fs/cgroup" / controller]


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:  # no such controller here
        return ""


def other_users() -> set[str]:
    """Return other users with a login or a process here: then the machine is shared."""
    own = os.getuid()
    found = {login.name for login in psutil.users()}
    for process in psutil.process_iter(["uids", "username"]):
        uids = process.info["uids"]
        if uids and _FIRST_HUMAN_UID <= uids.real < _NOBODY and uids.real != own:
            found.add(process.info["username"])
    return found - {psutil.Process().username()}


def file_system_of(path: Path, mounts: str | None = None) -> str:
    """Return the type of the file system that holds a path, by the longest matching mount point."""
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
