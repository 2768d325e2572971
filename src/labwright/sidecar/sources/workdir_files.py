"""Metric files in the workdir. Many runs may share it, so a file is read only if it surely belongs to this run:

a process of the run has it open for writing, or the run declares it; and no other run does. Other files that changed
are only reported: a number on the wrong run is worse than none.
"""

from __future__ import annotations

import ctypes
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from labwright.paths import RunPaths
from labwright.processes import METRIC_FILES_VARIABLE, RUN_ID_VARIABLE, all_pids
from labwright.sidecar.sources.followed import Claim, EventFile, Followed, JsonLines, TrainerState, is_claimed_since
from labwright.sidecar.sources.metric_file import NOTES, MetricFile, header_of
from labwright.sidecar.sources.start import CLOCK_SECONDS, METRICS_FILE, Start, declared_files, expand, split_names
from labwright.sidecar.sources.trainer_states import TRAINER_STATE, folder_of_states

_MARK = f"{METRIC_FILES_VARIABLE}=".encode()
_STATX_BTIME = 0x800
_AT_FDCWD = -100
_SEARCH_SECONDS = 0.25  # a file may be closed soon, and is not found after that
_TAKE_SECONDS = 0.5
_SLOWEST_SECONDS = 2.0
_SHARE = 20  # reading files may take 1/20 of the time
_REPORT_SECONDS = 20.0
_MOST_ENTRIES = 5000
_DEPTH = 4
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "env", "site-packages"})
_SPLITS = frozenset({"train", "training", "val", "valid", "validation", "eval", "test"})
_READERS: dict[str, type[Followed]] = {"file": JsonLines, "tensorboard": EventFile, "trainer_state": TrainerState}


@dataclass(frozen=True, slots=True)
class OpenFile:
    pid: int
    path: str
    truncated: bool  # opened in a way that truncates it


def open_for_writing(pids: Iterable[int], is_candidate: Callable[[str], bool]) -> Iterator[OpenFile]:
    for pid in pids:
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except OSError:  # it ended or changed its user
            continue
        for number in numbers:
            try:
                path = os.readlink(f"/proc/{pid}/fd/{number}")
                if is_candidate(path) and (file := _opened(pid, number, path)):
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
        return None  # the path is another file by now, or in another mount namespace
    return OpenFile(pid, path, truncated=access == os.O_WRONLY and not flags & os.O_APPEND)


def environment_of(pid: int) -> list[bytes]:
    """Return the environment of a process. Raise OSError if it has ended."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read().split(b"\0")


def declared_by(pids: Iterable[int]) -> set[tuple[str, str]]:
    """Return the files that these processes declare in their environment, with the folder each is relative to."""
    found = set()
    for pid in pids:
        try:
            entries = [entry for entry in environment_of(pid) if entry.startswith(_MARK)]
            folder = os.readlink(f"/proc/{pid}/cwd") if entries else ""
        except OSError:
            continue
        found |= {(folder, name) for entry in entries for name in split_names(os.fsdecode(entry[len(_MARK) :]))}
    return found


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


def birth_time(path: str) -> float | None:
    """Return when a file was created, or None if the system does not know."""
    statx = getattr(ctypes.CDLL(None), "statx", None)
    result = _Statx()
    if statx is None or statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, ctypes.byref(result)) != 0:
        return None
    return result.born.seconds + result.born.nanoseconds / 1e9 if result.mask & _STATX_BTIME else None


def kind_of(path: str) -> str | None:
    """Return the kind of source for a file name, or None."""
    name = os.path.basename(path)
    if name == METRICS_FILE:
        return "file"
    if name == TRAINER_STATE:
        return "trainer_state"
    return "tensorboard" if "tfevents" in name else None


class WorkdirFiles:
    def __init__(self, paths: RunPaths, spec: dict[str, Any], start: Start, tree: Callable[[], set[int]]) -> None:
        self._paths = paths
        self._spec = spec
        self._attempt: int = spec["run"]["attempt"]
        self._workdir: str = spec["sidecar"]["workdir"]
        self._claims: str = spec["sidecar"].get("metrics", {}).get("claims") or f"{paths.metrics}/claims"
        self._start = start
        self._tree = tree
        self._followed: dict[tuple[str, int], Followed] = {}
        self._notes = MetricFile(paths.metrics, "file", self._attempt, NOTES)
        self._noted = set(self._notes.refused)
        self._search_at = self._take_at = 0.0
        self._report_at = time.monotonic() + _REPORT_SECONDS
        self._doubtful: set[str] = set()
        self._resume()

    def look(self, *, last: bool = False) -> None:
        if last or time.monotonic() >= self._search_at:
            started = time.monotonic()
            self._search(self._tree())
            self._search_at = _next_time(started, _SEARCH_SECONDS)
        if last or (self._followed and time.monotonic() >= self._take_at):
            started = time.monotonic()
            self._take(last)
            self._take_at = _next_time(started, _TAKE_SECONDS)
        if last or time.monotonic() >= self._report_at:
            self._report_at = time.monotonic() + _REPORT_SECONDS
            self._report(last)

    def files(self) -> list[MetricFile]:
        return [self._notes, *(followed.file for followed in self._followed.values())]

    def _search(self, tree: set[int]) -> None:
        for opened in open_for_writing(tree, self._is_candidate):
            self._follow(opened.path, opened.truncated)
        declared = declared_files(self._spec)
        declared += [path for folder, name in declared_by(tree) for path in expand(folder, name)]
        for path in declared:
            if os.path.isfile(path):
                self._follow(os.path.realpath(path), truncated=False)

    def _take(self, last: bool) -> None:
        """Check all processes of the machine first: another run may write before its monitor runs."""
        grown = {followed.path: followed for followed in self._followed.values() if followed.look(last=last)}
        others = set(all_pids()) - self._tree() if grown else set()
        own_mark = f"{RUN_ID_VARIABLE}={self._spec['run']['id']}".encode()
        for opened in open_for_writing(others, grown.__contains__):
            try:
                is_marked = own_mark in environment_of(opened.pid)
            except OSError:  # it has ended
                continue
            if not is_marked and opened.pid not in self._tree():  # new children of the run have its mark
                followed = grown.pop(opened.path)
                followed.give_up("another process writes to it too, so its numbers cannot be assigned to one run")
        for followed in grown.values():
            followed.take()

    def _is_candidate(self, path: str) -> bool:
        ours = path.startswith(f"{self._paths.dir}/") and not path.startswith(f"{self._paths.code}/")
        return not ours and kind_of(path) is not None

    def _follow(self, path: str, truncated: bool) -> None:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return
        source = kind_of(path) or ("file" if path.endswith((".jsonl", ".ndjson", ".json")) else None)
        if source is None:
            self._note(path, "its format is not known; declare .jsonl, TensorBoard event files or trainer_state.json")
            return
        identity = _identity(path, source, found.st_ino)
        known = self._followed.get(identity)
        if isinstance(known, TrainerState):
            known.offer(path)
        if known is not None:
            return
        start = self._start_of(path, found, source, truncated)
        header = {"file": path, "inode": found.st_ino, "from": start, "prefix": self._prefix(path, source)}
        if source == "trainer_state":
            header["before"] = self._start.states_in(folder_of_states(path))
        file = MetricFile(self._paths.metrics, source, self._attempt, _digest(identity), **header)
        self._open(identity, file)

    def _open(self, identity: tuple[str, int], file: MetricFile) -> None:
        path, source = file.header["file"], file.header["source"]
        claim = Claim(self._claims, os.stat(identity[0]))
        self._followed[identity] = followed = _READERS[source](path, file, claim, self._start.time)
        followed.closed = path in file.refused

    def _resume(self) -> None:
        """Continue with the files that an earlier monitor had found."""
        if not os.path.isdir(self._paths.metrics):
            return
        for name in os.listdir(self._paths.metrics):
            header = header_of(f"{self._paths.metrics}/{name}") if name.endswith(".jsonl") else {}
            if "file" not in header or header.get("attempt") != self._attempt or not os.path.exists(header["file"]):
                continue  # written by the SDK or an earlier attempt, or deleted
            path, source = header["file"], header["source"]
            identity = _identity(path, source, header["inode"])
            file = MetricFile(self._paths.metrics, source, self._attempt, _digest(identity))
            self._open(identity, file)

    def _start_of(self, path: str, found: os.stat_result, source: str, truncated: bool) -> int:
        """Return where this run's part starts: 0 in its own files, else the size that the file had."""
        if source == "trainer_state":
            return -1  # the first state that the run writes decides
        if source == "tensorboard" or truncated:
            return 0
        born = birth_time(path)
        was_there = self._start.sizes.get(path, (-1, 0))[0] == found.st_ino
        if born is not None and born >= self._start.time + (CLOCK_SECONDS if was_there else 0.0):
            return 0
        if path not in self._start.sizes:
            self._note(path, "it is older than the run; what it held when first seen is skipped")
        return self._start.size_of(path, found, otherwise=found.st_size)

    def _prefix(self, path: str, source: str) -> str:
        """Return a prefix that keeps series of several folders apart.

        The first folder has plain names, unless its name is that of a split.
        """
        folder = os.path.basename(folder_of_states(path) if source == "trainer_state" else os.path.dirname(path))
        others = {os.path.dirname(f.path) for f in self._followed.values() if f.file.header["source"] == source}
        alone = not others or others == {os.path.dirname(path)}
        return "" if source == "trainer_state" or (alone and folder.lower() not in _SPLITS) else f"{folder}/"

    def _report(self, last: bool) -> None:
        """Report files that changed. Each must be seen twice: another run's monitor may need time to claim it."""
        changed = set(self._unclaimed_changes())
        for path in changed if last else changed & self._doubtful:
            why = f"changed during the run, maybe not by it; declare it in {METRIC_FILES_VARIABLE} to have it read"
            self._note(path, why)
        self._doubtful = changed

    def _unclaimed_changes(self) -> Iterator[str]:
        mine = {path for followed in self._followed.values() for path in followed.paths}
        for entry in _walk(self._workdir):
            kind = kind_of(entry.path)
            if kind is None or os.path.realpath(entry.path) in mine:
                continue
            try:
                changed, claimed = entry.stat(), os.stat(_identity(entry.path, kind, 0)[0])
            except OSError:
                continue
            since = self._start.time
            if changed.st_mtime >= since and not is_claimed_since(self._claims, claimed, since):
                yield entry.path

    def _note(self, path: str, why: str) -> None:
        """Note a file once."""
        name = os.path.relpath(path, self._workdir)
        if name not in self._noted:
            self._noted.add(name)
            self._notes.refuse(name, why, time.time(), (0, 0))


def _next_time(started: float, soonest: float) -> float:
    cost = time.monotonic() - started
    return started + min(max(soonest, cost * _SHARE), _SLOWEST_SECONDS)


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield files below a folder, nearest first, from at most a few thousand entries."""
    todo, left = [(folder, _DEPTH)], _MOST_ENTRIES
    while todo and left > 0:
        where, depth = todo.pop(0)
        try:
            entries = list(os.scandir(where))
        except OSError:
            continue
        left -= len(entries)
        for entry in entries:
            if entry.is_file():
                yield entry
            elif entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            elif depth > 1 and entry.is_dir(follow_symlinks=False):
                todo.append((entry.path, depth - 1))


def _identity(path: str, source: str, inode: int) -> tuple[str, int]:
    """Return what is read and claimed as one: a file, or all states of a folder."""
    return (folder_of_states(path), 0) if source == "trainer_state" else (path, inode)


def _digest(identity: tuple[str, int]) -> str:
    """Return a part of a file name. A collision within one run is very unlikely (1 in 4 billion)."""
    return f"{zlib.crc32(os.fsencode(identity[0])):08x}{identity[1]:x}"
