"""Which files the processes of a run hold open for writing, and when a file was made."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from labwright.processes import METRIC_FILES_VARIABLE

_MARK = f"{METRIC_FILES_VARIABLE}=".encode()


@dataclass(frozen=True, slots=True)
class OpenFile:
    pid: int
    path: str
    truncated: bool  # opened so that what was in it went


def open_for_writing(pids: Iterable[int], wanted: Callable[[str], bool]) -> Iterator[OpenFile]:
    for pid in pids:
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except OSError:  # it ended, or it changed its user
            continue
        for number in numbers:
            try:
                path = os.readlink(f"/proc/{pid}/fd/{number}")
                if wanted(path) and (file := _opened(pid, number, path)):
                    yield file
            except OSError:  # closed meanwhile
                continue


def _opened(pid: int, number: str, path: str) -> OpenFile | None:
    with open(f"/proc/{pid}/fdinfo/{number}") as info:
        flags = next(int(line.split()[1], 8) for line in info if line.startswith("flags:"))
    access = flags & os.O_ACCMODE
    if access not in (os.O_WRONLY, os.O_RDWR):
        return None
    if not os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), os.stat(path)):
        return None  # the path means another file by now, or in another mount namespace
    return OpenFile(pid, path, truncated=access == os.O_WRONLY and not flags & os.O_APPEND)


def environment_of(pid: int) -> list[bytes]:
    """Raises OSError once it has ended."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read().split(b"\0")


def declared_by(pids: Iterable[int]) -> set[tuple[str, str]]:
    """What the environments of these processes declare, each with the folder it is relative to."""
    found = set()
    for pid in pids:
        try:
            entries = [entry for entry in environment_of(pid) if entry.startswith(_MARK)]
            folder = os.readlink(f"/proc/{pid}/cwd") if entries else ""
        except OSError:
            continue
        found |= {(folder, name) for entry in entries for name in split_names(os.fsdecode(entry[len(_MARK) :]))}
    return found


def split_names(text: str) -> list[str]:
    return [name for name in text.split(":") if name]


class _StatxTime(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_uint32), ("reserved", ctypes.c_int32)]


class _Statx(ctypes.Structure):
    _fields_ = [
        ("mask", ctypes.c_uint32),
        ("until_times", ctypes.c_uint8 * 60),
        ("accessed", _StatxTime),
        ("born", _StatxTime),
        ("rest", ctypes.c_uint8 * 256),
    ]


_STATX_BTIME = 0x800
_AT_FDCWD = -100


def birth_time(path: str) -> float | None:
    """None where the system or the file system does not know."""
    statx = getattr(ctypes.CDLL(None), "statx", None)
    answer = _Statx()
    if statx is None or statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, ctypes.byref(answer)) != 0:
        return None
    return answer.born.seconds + answer.born.nanoseconds / 1e9 if answer.mask & _STATX_BTIME else None
