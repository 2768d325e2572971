"""What a whole tree of processes takes: the kernel's limits count each process alone, and those of root not at all."""

from __future__ import annotations

import os
from collections.abc import Collection

from labwright.processes import descendants_of
from labwright.sandbox.fences import Limits

_TICKS = os.sysconf("SC_CLK_TCK")


def over_limit(pid: int, limits: Limits) -> str:
    """Which limit the process and all below it have passed together; empty while there is none."""
    tree = {pid, *descendants_of(pid)}
    if len(tree) > limits.processes:
        return "processes"
    if sum(map(_cpu_seconds, tree)) > limits.cpu_seconds:
        return "processor time"
    return _over_memory(tree, limits)


def over_memory(pid: int, limits: Limits) -> str:
    """The same for memory alone, where the kernel bounds the rest."""
    return _over_memory({pid, *descendants_of(pid)}, limits)


def _over_memory(tree: Collection[int], limits: Limits) -> str:
    """First by a sum in which what several share counts for each; exactly, which costs the kernel more, only then."""
    most = limits.memory_mb << 20
    return "memory" if sum(map(_mapped_bytes, tree)) > most and sum(map(_share_of_bytes, tree)) > most else ""


def _cpu_seconds(pid: int) -> float:
    """Its own, and that of children which have ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


def _mapped_bytes(pid: int) -> int:
    """In memory, its own and shared with others; not the files of libraries, which the kernel can drop."""
    return sum(_bytes_of(f"/proc/{pid}/status", "RssAnon:", "RssShmem:"))


def _share_of_bytes(pid: int) -> int:
    """The same with each page divided among those who have it. Old kernels do not tell."""
    try:
        found = _bytes_of(f"/proc/{pid}/smaps_rollup", "Pss_Anon:", "Pss_Shmem:")
    except PermissionError:
        found = []
    return sum(found) if found else _mapped_bytes(pid)


def _bytes_of(path: str, *names: str) -> list[int]:
    try:
        with open(path) as file:
            return [int(line.split()[1]) << 10 for line in file if line.startswith(names)]
    except (FileNotFoundError, ProcessLookupError):
        return []
