"""Processes as the kernel reports them: which are alive, which belong to a run, and how to end a whole tree.

PIDs are reused, so a process is identified by its PID, its start time and the machine's boot id.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

RUN_ID_VARIABLE = "LABWRIGHT_RUN_ID"
METRIC_FILES_VARIABLE = "LABWRIGHT_METRIC_FILES"  # set by the user, unlike our other variables
NO_SUCH_PROGRAM = (FileNotFoundError, PermissionError)  # the second one if the user may not read a folder of PATH


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    pid: int
    start_time: int
    boot_id: str
    host: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ProcessIdentity:
        return cls(**{name: data[name] for name in cls.__dataclass_fields__})

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine, by host name or boot id: a recreated container has a new name."""
        return self.host == socket.gethostname() or self.boot_id == boot_id()

    @property
    def is_alive(self) -> bool:
        return self.boot_id == boot_id() and start_time(self.pid) == self.start_time


def identity(pid: int) -> ProcessIdentity:
    started = start_time(pid)
    return ProcessIdentity(pid=pid, start_time=started or 0, boot_id=boot_id(), host=socket.gethostname())


def read_identity(path: str | os.PathLike[str]) -> ProcessIdentity | None:
    """Return the process that a file names, or None if there is no valid one."""
    try:
        with open(path, "rb") as file:
            return ProcessIdentity.from_dict(json.loads(file.read()))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def kept_exit_code(path: str) -> int | None:
    """Return the exit code that the C library saved for `sdk/exit_code.py`, or None if there is none yet."""
    try:
        with open(path, "rb") as file:
            kept = file.read()
    except FileNotFoundError:
        return None
    return None if kept in (b"", b"??") else kept[0]


def terminate(process: ProcessIdentity) -> bool:
    """Send TERM to exactly this process and return whether it was alive.

    The handle is taken first, so the PID cannot be reused between the check and the signal.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not process.is_alive:
            return False
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def user_name() -> str:
    """Return the name of the current user, or its number if it has no name, as in many containers."""
    import getpass  # imported here: rarely needed, and every sidecar loads this module

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@functools.cache
def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_time(pid: int) -> int | None:
    """Return the start in clock ticks since boot, or None if the process has ended. A zombie has ended."""
    fields = _stat_fields(pid)
    return None if fields is None or fields[0] in ("Z", "X") else int(fields[19])


def state_of(pid: int) -> str | None:
    """Return the kernel's state letter, or None if there is no such process."""
    fields = _stat_fields(pid)
    return None if fields is None else fields[0]


def parent_of(pid: int) -> int | None:
    fields = _stat_fields(pid)
    return None if fields is None else int(fields[1])


def work_of(pid: int) -> int:
    """Return the processor time so far in clock ticks."""
    fields = _stat_fields(pid)
    return 0 if fields is None else int(fields[11]) + int(fields[12])


def _stat_fields(pid: int) -> list[str] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()  # the name may contain spaces and brackets


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children_of(pid: int) -> list[int]:
    """Return the children from the kernel's list, or by checking every process if the kernel has no list.

    A child belongs to the thread that forked it, so every thread is read.
    """
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                children.extend(int(text) for text in file.read().split())
    except FileNotFoundError:
        return [other for other in all_pids() if parent_of(other) == pid]
    except ProcessLookupError:  # the process ended while we read
        return children
    return children


def descendants_of(pid: int) -> set[int]:
    found: set[int] = set()
    todo = children_of(pid)
    while todo:
        child = todo.pop()
        if child not in found:
            found.add(child)
            todo.extend(children_of(child))
    return found


def processes_of_run(run_id: str) -> set[int]:
    """Return every live process of this user whose environment names the run, including detached daemons."""
    mark = f"{RUN_ID_VARIABLE}={run_id}".encode()
    found = set()
    for pid in all_pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                belongs = mark in file.read().split(b"\0")
        except OSError:  # the process ended, or it belongs to another user
            continue
        if belongs and start_time(pid) is not None:
            found.add(pid)
    return found


def send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def parents_first(pids: Iterable[int]) -> list[int]:
    """Sort processes for ending: a shell that outlives its command would start the next one."""
    return sorted(pids, key=lambda pid: (start_time(pid) or 0, pid))


def end_tree(find: Callable[[], Iterable[int]], grace_seconds: float, reap: Callable[[], None] = lambda: None) -> int:
    """Send TERM, wait up to the grace time, then KILL until no process is left. Return how many were found in all.

    `find` is called repeatedly, because a dying tree may still fork. `reap` lets a parent collect ended children.
    """
    met: set[int] = set()
    deadline = time.monotonic() + grace_seconds
    while alive := set(find()):
        killing = time.monotonic() >= deadline
        for pid in parents_first(alive):
            if killing or pid not in met:
                send_signal(pid, signal.SIGKILL if killing else signal.SIGTERM)
                send_signal(pid, signal.SIGCONT)  # a stopped process gets no signal until it continues
        met |= alive
        time.sleep(0.02)
        reap()
    return len(met)
