"""What a whole tree of processes takes: the kernel's limits count each process alone, and those of root not at all."""

from __future__ import annotations

import os

from labwright.processes import descendants_of
from labwright.sandbox.fences import Limits

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def over_limit(pid: int, limits: Limits) -> str:
    """Which limit the process and all below it have passed together; empty while there is none."""
    tree = {pid, *descendants_of(pid)}
    if len(tree) > limits.processes:
        return "processes"
    if sum(map(_cpu_seconds, tree)) > limits.cpu_seconds:
        return "processor time"
    return "memory" if sum(map(_own_bytes, tree)) > limits.memory_mb << 20 else ""


def _cpu_seconds(pid: int) -> float:
    """Its own, and that of children which have ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


def _own_bytes(pid: int) -> int:
    """In memory and not shared, so that a page counts once."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            _, resident, shared, *_ = file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(resident) - int(shared)) * _PAGE
