"""Which files are the project's code, and what to watch to know that the answer still holds.

In a git repository: tracked files, and untracked ones that are not ignored. Elsewhere: everything, without what
tools make (environments, caches); a `.gitignore` outside of a repository is not honoured. What tools make is
also left out where it is untracked in a repository that forgot to ignore it. `.labwright` is never code.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from labwright.compute.snapshot import git
from labwright.compute.snapshot.files import Signature, is_settled, signature
from labwright.paths import STATE_DIR

MAX_FILES = 20_000  # a folder with more holds data; the snapshot then says that it is partial
MAX_FOLDERS = 5_000  # walked without git's help
MAX_REPOSITORIES = 50  # nested ones and submodules, each some processes to ask

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
    """Relative paths, tracked ones first, then those near the top: what is dropped beyond a cap comes last."""

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
        """Add a nested repository, whose changes make the whole differ from the outer commit."""
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
    asked = 0
    while listing.nested and asked < MAX_REPOSITORIES:
        folder, asked = listing.nested.pop(), asked + 1
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
    # Looked at before git is asked: a change during the question then shows as one after it.
    guards = {guard: signature(guard) for guard in repository.guards}
    notes: list[str] = []
    if repository.top is not None:
        try:
            answer = git.ask(folder, repository.top)
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


def _from_git(folder: str, answer: git.Answer, guards: dict[str, Signature | None]) -> Listing:
    walk = _Walk(folder, frozenset(answer.ignored), sys.maxsize, sys.maxsize)  # git has walked it already
    tracked = [path for path in answer.tracked if STATE_DIR not in path.split("/")]
    untracked = _without_tools(answer.untracked)
    nested = [path for path in _without_tools(answer.nested) if os.path.lexists(f"{folder}/{path}/.git")]
    excludes = {answer.excludes_file: signature(answer.excludes_file)} if answer.excludes_file else {}
    return Listing(
        tracked=tracked,
        untracked=untracked,
        unreadable=walk.unreadable,
        nested=nested,
        watch=_parents(folder, tracked) | walk.watch | guards | excludes,
        commit=answer.commit,
        dirty=answer.modified or bool(untracked),
    )


def _without_tools(paths: Iterable[str]) -> list[str]:
    """Leave out what lies in an environment or a cache, by name or by marker."""
    paths = list(paths)
    made = {path.rpartition("/")[0] for path in paths if path.rpartition("/")[2] in _MARKERS}
    made |= {path.partition("/conda-meta/")[0] for path in paths if "/conda-meta/" in path}
    return [path for path in paths if not _is_made(path, made - {""})]


def _is_made(path: str, made: set[str]) -> bool:
    parts = path.split("/")
    if not _MADE_BY_TOOLS.isdisjoint(parts):
        return True
    return bool(made) and any("/".join(parts[:depth]) in made for depth in range(1, len(parts)))


def _parents(folder: str, paths: list[str]) -> dict[str, Signature | None]:
    """Tracked files may lie in folders that a walk leaves out."""
    folders = {path.rpartition("/")[0] for path in paths} - {""}
    return {f"{folder}/{path}": signature(f"{folder}/{path}") for path in folders}


class _Walk:
    """Breadth first, so that a cap drops deep data rather than the code at the top. Links are not followed."""

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
        self.watch[path] = signature(path)  # before it is read, so that a change meanwhile shows
        try:
            with os.scandir(path) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except PermissionError:
            self.unreadable.append(folder)
            return
        except (FileNotFoundError, NotADirectoryError):  # gone since its parent was read, which shows there
            return
        self._sort_out(folder, entries, {entry.name for entry in entries})

    def _sort_out(self, folder: str, entries: list[os.DirEntry[str]], names: set[str]) -> None:
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
            if entry.name == ".gitignore":  # may itself be ignored, and still counts
                self.watch[entry.path] = signature(entry.path)
