"""The files of one folder, remembered between snapshots: git and file content are read only if a signature changed."""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate

from labwright.compute.snapshot import git
from labwright.compute.snapshot.files import (
    KnownFile,
    Manifest,
    Signature,
    SnapshotEntry,
    all_absent,
    all_unchanged,
    is_settled,
    read_entry,
    signature,
    unkept,
)
from labwright.domain.errors import NotFound
from labwright.paths import STATE_DIR

MAX_BYTES = 256 * 1024 * 1024  # stored per tree; more is probably data, and a submit would have to wait


def hash_only(data: bytes) -> str:
    return sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Scan:
    manifest: Manifest
    listing: Listing


def _identity(folder: str) -> tuple[int, int]:
    try:
        info = os.stat(folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"There is no folder {folder}.") from error
    return (info.st_dev, info.st_ino)


class SnapshotTree:
    """Not thread-safe."""

    def __init__(self, name: str, max_file_bytes: int) -> None:
        self.name = name  # may be a link, or lead through one
        self.root = name
        self._folder: tuple[int, int] | None = None
        self._limit = max_file_bytes
        self._known: dict[str, KnownFile] = {}
        # Files edited just before they were read: their signature does not prove that they are unchanged.
        self._fresh: dict[str, KnownFile] = {}
        self._present: list[tuple[str, Signature]] = []
        self._absent: list[str] = []  # files that would change the listing if they appeared
        self._listing_settled = False
        self._hidden: frozenset[str] = frozenset()
        self._hidden_names: set[str] = set()

    def hide(self, paths: frozenset[str]) -> bool:
        """Leave out these real paths. Return whether that changes anything."""
        changed = paths != self._hidden
        self._hidden, self._hidden_names = paths, {os.path.basename(path) for path in paths}
        return changed

    def without_hidden(self, manifest: Manifest) -> Manifest:
        entries = tuple(entry for entry in manifest.entries if not self._is_hidden(entry.path))
        return Manifest(entries, manifest.partial)

    def _is_hidden(self, path: str) -> bool:
        if os.path.basename(path) not in self._hidden_names:  # most files; resolving a path is expensive
            return False
        return os.path.realpath(f"{self.root}/{path}") in self._hidden

    def is_unchanged(self, clock: Callable[[], int]) -> bool:
        """Return whether nothing changed since the last scan: compares signatures, and the content of fresh files."""
        if not self._listing_settled or self._folder != _identity(self.name):
            return False
        if not (all_unchanged(self._present) and all_absent(self._absent)):
            return False
        return all(self._has_same_content(known, clock()) for known in list(self._fresh.values()))

    def _has_same_content(self, known: KnownFile, now: int) -> bool:
        path = known.entry.path
        again = read_entry(f"{self.root}/{path}", path, now, self._limit, hash_only)
        if again is None or again.entry != known.entry or again.signature != known.signature:
            return False
        if again.settled:
            self._known[path] = again
            del self._fresh[path]
        return True

    def scan(self, now: int, keep: Callable[[bytes], str], has: Callable[[str], bool]) -> Scan:
        """List the files again and read those that are new or not stored. `now` is the file system's current time."""
        self._folder, self.root = _identity(self.name), os.path.realpath(self.name)
        listing = list_tree(self.root)
        listing.leave_out(self._is_hidden)
        found = self._within_budget(listing)
        for path, known in found.items():
            if known is None or (known.entry.hash and not has(known.entry.hash)):
                found[path] = read_entry(f"{self.root}/{path}", path, now, self._limit, keep)
        self._remember(listing, {path: known for path, known in found.items() if known}, now)
        entries = [known.entry for known in self._known.values()]
        entries += [SnapshotEntry(path or ".", stat.S_IFDIR, 0, None, 0) for path in listing.unreadable]
        return Scan(Manifest(tuple(entries), listing.partial), listing)

    def _within_budget(self, listing: Listing) -> dict[str, KnownFile | None]:
        """Return the known files, with None for those to read. Files over the budget are known by size and time."""
        seen = {path: signature(f"{self.root}/{path}") for path in listing.files()}
        present = {path: info for path, info in seen.items() if info}
        found: dict[str, KnownFile | None] = {}
        for path, info in present.items():
            known = self._known.get(path)
            is_usable = known and known.settled and known.entry.hash and known.signature == info
            found[path] = known if is_usable else None
        over = self._over_budget(present, set(listing.tracked))
        for path in over:
            found[path] = unkept(path, present[path])
        if over:
            listing.partial = True
            listing.notes.append(f"More than {MAX_BYTES >> 20} MB; the rest is recorded by size and time only.")
        return found

    def _over_budget(self, present: dict[str, Signature], tracked: set[str]) -> list[str]:
        """Return the files beyond the budget. Tracked files come first, then small ones: they are likely code."""
        kept = [(path, info[2]) for path, info in present.items() if info[2] <= self._limit]
        if sum(size for _, size in kept) <= MAX_BYTES:
            return []
        kept.sort(key=lambda item: (item[0] not in tracked, item[1], item[0]))
        totals = accumulate(size for _, size in kept)
        return [path for (path, _), total in zip(kept, totals, strict=True) if total > MAX_BYTES]

    def _remember(self, listing: Listing, found: dict[str, KnownFile], now: int) -> None:
        self._known = found
        self._fresh = {path: known for path, known in found.items() if not known.settled}
        self._present = [(path, seen) for path, seen in listing.watch.items() if seen]
        self._present += [(f"{self.root}/{path}", known.signature) for path, known in found.items()]
        self._absent = [path for path, seen in listing.watch.items() if not seen]
        self._listing_settled = listing.is_settled(now)


MAX_FILES = 20_000  # a folder with more holds data; its snapshot is marked as partial
MAX_FOLDERS = 5_000  # walked without git
MAX_REPOSITORIES = 50  # nested ones and submodules; each costs some processes

_NEVER = frozenset({".git", STATE_DIR})
_MADE_BY_TOOLS = _NEVER | {
    ".hg",
    ".svn",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".tox",
    ".nox",
    ".eggs",
    ".ipynb_checkpoints",
}
_MARKERS = frozenset({"pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"})  # in an environment or a cache of any name


@dataclass(slots=True)
class Listing:
    """Relative paths: tracked ones first, then those near the top, because a limit drops the last ones."""

    tracked: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    watch: dict[str, Signature | None] = field(default_factory=dict)
    commit: str | None = None
    dirty: bool | None = None
    partial: bool = False
    notes: list[str] = field(default_factory=list)

    def is_settled(self, clock: int) -> bool:
        return all(seen is None or is_settled(seen, clock) for seen in self.watch.values())

    def files(self) -> list[str]:
        return [*self.tracked, *self.untracked]

    def leave_out(self, unwanted: Callable[[str], bool]) -> None:
        self.tracked = [path for path in self.tracked if not unwanted(path)]
        self.untracked = [path for path in self.untracked if not unwanted(path)]

    def cap(self) -> None:
        if len(self.tracked) + len(self.untracked) > MAX_FILES:
            self.partial = True
            self.notes.append(f"More than {MAX_FILES} files; the rest is not in the snapshot.")
        del self.tracked[MAX_FILES:]
        del self.untracked[MAX_FILES - len(self.tracked) :]

    def absorb(self, part: Listing, folder: str) -> None:
        """Add a nested repository. Its changes make the whole tree differ from the outer commit."""
        for ours, theirs in ((self.tracked, part.tracked), (self.untracked, part.untracked)):
            ours += [f"{folder}/{path}" for path in theirs]
        self.unreadable += [f"{folder}/{path}".rstrip("/") for path in part.unreadable]
        self.nested += [f"{folder}/{path}" for path in part.nested]
        self.watch |= part.watch
        self.notes += part.notes
        self.dirty = self.dirty if self.dirty is None else self.dirty or bool(part.dirty)
        self.partial |= part.partial


def list_tree(root: str) -> Listing:
    listing = _list_one(root)
    count = 0
    while listing.nested and count < MAX_REPOSITORIES:
        folder, count = listing.nested.pop(), count + 1
        listing.absorb(_list_one(f"{root}/{folder}"), folder)
    if listing.nested:
        listing.partial = True
        listing.notes.append(f"More than {MAX_REPOSITORIES} nested repositories; the rest is not in the snapshot.")
    listing.tracked.sort()
    listing.untracked.sort(key=lambda path: (path.count("/"), path))
    listing.cap()
    return listing


def _list_one(folder: str) -> Listing:
    repository = git.find_repository(folder)
    # Signatures are taken before git runs, so that a change meanwhile is noticed later.
    guards = {guard: signature(guard) for guard in repository.guards}
    notes: list[str] = []
    if repository.top is not None:
        try:
            answer = git.list_files(folder, repository.top)
        except git.GitError as error:
            notes.append(f"Listed without git: {error}.")
        else:
            if not answer.folder_is_ignored:
                return _from_git(folder, answer, guards)
    return _from_walk(folder, guards, notes)


def _from_walk(folder: str, guards: dict[str, Signature | None], notes: list[str]) -> Listing:
    walk = _Walk(folder, frozenset(), MAX_FILES, MAX_FOLDERS)
    if walk.cut:
        notes.append(f"More than {MAX_FILES} files or {MAX_FOLDERS} folders; the rest is not in the snapshot.")
    return Listing(
        untracked=walk.files,
        unreadable=walk.unreadable,
        nested=walk.nested,
        watch=guards | walk.watch,
        partial=walk.cut,
        notes=notes,
    )


def _from_git(folder: str, answer: git.GitOutput, guards: dict[str, Signature | None]) -> Listing:
    walk = _Walk(folder, frozenset(answer.ignored), sys.maxsize, sys.maxsize)  # git has walked it already
    tracked = [path for path in answer.tracked if STATE_DIR not in path.split("/")]
    untracked = _without_tools(answer.untracked)
    nested = [path for path in _without_tools(answer.nested) if os.path.lexists(f"{folder}/{path}/.git")]
    parent_paths = {f"{folder}/{parent}" for path in tracked if (parent := path.rpartition("/")[0])}
    parents = {path: signature(path) for path in parent_paths}  # a walk may leave them out
    excludes = {answer.excludes_file: signature(answer.excludes_file)} if answer.excludes_file else {}
    return Listing(
        tracked=tracked,
        untracked=untracked,
        unreadable=walk.unreadable,
        nested=nested,
        watch=parents | walk.watch | guards | excludes,
        commit=answer.commit,
        dirty=answer.modified or bool(untracked),
    )


def _without_tools(paths: Iterable[str]) -> list[str]:
    """Leave out files in an environment or a cache, found by name or by marker."""
    paths = list(paths)
    made = {path.rpartition("/")[0] for path in paths if path.rpartition("/")[2] in _MARKERS}
    made |= {path.partition("/conda-meta/")[0] for path in paths if "/conda-meta/" in path}
    return [path for path in paths if not _is_in_tool_folder(path, made - {""})]


def _is_in_tool_folder(path: str, made: set[str]) -> bool:
    parts = path.split("/")
    if not _MADE_BY_TOOLS.isdisjoint(parts):
        return True
    return bool(made) and any("/".join(parts[:depth]) in made for depth in range(1, len(parts)))


class _Walk:
    """Walks breadth first, so that a limit drops deep data rather than code at the top. Does not follow links."""

    def __init__(self, top: str, ignored: frozenset[str], max_files: int, max_folders: int) -> None:
        self.top = top
        self.ignored = ignored
        self.files: list[str] = []
        self.nested: list[str] = []
        self.unreadable: list[str] = []
        self.watch: dict[str, Signature | None] = {}
        self._queue = deque([""])
        while self._queue and len(self.watch) < max_folders and len(self.files) < max_files:
            self._visit(self._queue.popleft())
        self.cut = bool(self._queue) or len(self.files) > max_files
        del self.files[max_files:]

    def _visit(self, folder: str) -> None:
        path = f"{self.top}/{folder}".rstrip("/") or "/"
        self.watch[path] = signature(path)  # taken before the folder is read, so that a change meanwhile is noticed
        try:
            with os.scandir(path) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except PermissionError:
            self.unreadable.append(folder)
            return
        except (FileNotFoundError, NotADirectoryError):  # removed meanwhile; the signature of its parent shows that
            return
        names = {entry.name for entry in entries}
        if folder and ".git" in names:
            self.nested.append(folder)
        elif not folder or _MARKERS.isdisjoint(names):
            for entry in entries:
                self._add(entry, f"{folder}/{entry.name}" if folder else entry.name)

    def _add(self, entry: os.DirEntry[str], path: str) -> None:
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in _MADE_BY_TOOLS and path not in self.ignored:
                self._queue.append(path)
        elif entry.name not in _NEVER:
            self.files.append(path)
            if entry.name == ".gitignore":  # it counts even if it is ignored itself
                self.watch[entry.path] = signature(entry.path)
