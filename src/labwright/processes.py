"""Processes as the kernel shows them: who is alive, who belongs to a run, how to end a whole tree.

PIDs are reused, so a process is known by its PID together with its start time and the machine's boot id.
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
METRIC_FILES_VARIABLE = "LABWRIGHT_METRIC_FILES"  # the one of ours that a user sets for a job
NO_SUCH_PROGRAM = (FileNotFoundError, PermissionError)  # the second one where a folder of PATH is closed to this user


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
        """By name, or by the kernel: a container that is made anew has another name and the same processes."""
        return self.host == socket.gethostname() or self.boot_id == boot_id()

    @property
    def is_alive(self) -> bool:
        return self.boot_id == boot_id() and start_time(self.pid) == self.start_time


def identity(pid: int) -> ProcessIdentity:
    started = start_time(pid)
    return ProcessIdentity(pid=pid, start_time=started or 0, boot_id=boot_id(), host=socket.gethostname())


def read_identity(path: str | os.PathLike[str]) -> ProcessIdentity | None:
    """Who a file names; None where there is none, or it says something else."""
    try:
        with open(path, "rb") as file:
            return ProcessIdentity.from_dict(json.loads(file.read()))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def kept_exit_code(path: str) -> int | None:
    """What `sdk/exit_code.py` had the C library keep there; None if it has not come to that."""
    try:
        with open(path, "rb") as file:
            kept = file.read()
    except FileNotFoundError:
        return None
    return None if kept in (b"", b"??") else kept[0]


def terminate(process: ProcessIdentity) -> bool:
    """TERM to this process and no other: the handle is taken first, so that its number cannot change hands between
    the look and the signal. False if it has ended."""
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
    """Whose process this is; a number where the system has no name for it, as in many containers."""
    import getpass  # few need it, and every sidecar starts with this module

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@functools.cache
def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_time(pid: int) -> int | None:
    """Clock ticks since boot, or None once the process has ended (a zombie has ended too)."""
    fields = _stat_fields(pid)
    return None if fields is None or fields[0] in ("Z", "X") else int(fields[19])


def state_of(pid: int) -> str | None:
    """The kernel's letter; none once it is gone."""
    fields = _stat_fields(pid)
    return None if fields is None else fields[0]


def parent_of(pid: int) -> int | None:
    fields = _stat_fields(pid)
    return None if fields is None else int(fields[1])


def work_of(pid: int) -> int:
    """Processor time so far, in the kernel's ticks."""
    fields = _stat_fields(pid)
    return 0 if fields is None else int(fields[11]) + int(fields[12])


def _stat_fields(pid: int) -> list[str] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()  # the name may hold spaces and brackets


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children_of(pid: int) -> list[int]:
    """Straight from the kernel where it offers the list; by a look at every process where it does not.

    A child belongs to the thread that forked it, so every thread is asked.
    """
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                children.extend(int(text) for text in file.read().split())
    except FileNotFoundError:
        return [other for other in all_pids() if parent_of(other) == pid]
    except ProcessLookupError:  # it ended while we read
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
    """Every live process of this user whose environment names the run: also daemons that escaped the tree."""
    mark = f"{RUN_ID_VARIABLE}={run_id}".encode()
    found = set()
    for pid in all_pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                belongs = mark in file.read().split(b"\0")
        except OSError:  # it ended meanwhile, or it is somebody else's
            continue
        if belongs and start_time(pid) is not None:
            found.add(pid)
    return found


def send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def parents_first(pids: Iterable[int]) -> list[int]:
    """In the order in which they are to be ended: a shell that outlives its command begins the next one."""
    return sorted(pids, key=lambda pid: (start_time(pid) or 0, pid))


def end_tree(find: Callable[[], Iterable[int]], grace_seconds: float, reap: Callable[[], None] = lambda: None) -> int:
    """TERM, wait for up to the grace, KILL until nobody is left. Answers how many were met in all.

    `find` is asked again and again, since a dying tree may still fork; `reap` lets a parent collect its dead.
    """
    met: set[int] = set()
    deadline = time.monotonic() + grace_seconds
    while alive := set(find()):
        killing = time.monotonic() >= deadline
        for pid in parents_first(alive):
            if killing or pid not in met:
                send_signal(pid, signal.SIGKILL if killing else signal.SIGTERM)
                send_signal(pid, signal.SIGCONT)  # a stopped process sees neither until it goes on
        met |= alive
        time.sleep(0.02)
        reap()
    return len(met)
