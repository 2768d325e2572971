"""Walk the project's folder within limits, and read its files."""

from __future__ import annotations

import itertools
import os
import stat
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from labwright.paths import STATE_DIR
from labwright.planning.scan.facts import Skipped

_NOT_OURS = {
    ".git", ".hg", ".svn", "__pycache__", "node_modules", "site-packages", ".tox", ".nox", ".mypy_cache",
    ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", ".eggs", "wandb", "mlruns", "lightning_logs", ".dvc",
    ".idea", ".vscode", STATE_DIR,
}  # fmt: skip
_OF_ENVIRONMENTS = {"pyvenv.cfg", "conda-meta"}
UNFINISHED = ".unfinished"  # a file with this suffix marks an environment that is being made
JUST_MADE = "labwright.new"  # the same file inside the finished environment, until it is recorded
_MAX_SKIPPED = 200  # beyond it, skipped files are only counted


@dataclass(frozen=True, slots=True)
class ScanLimits:
    files: int = 20_000
    entries_of_a_folder: int = 4_000  # a folder with more entries holds data
    depth: int = 12
    bytes_of_a_file: int = 1_000_000
    bytes: int = 100_000_000
    seconds: float = 10.0


@dataclass(slots=True)
class ProjectTree:
    """The files of the project, read within the limits."""

    root: str
    limits: ScanLimits
    files: list[str] = field(default_factory=list)  # relative, with forward slashes
    environments: list[str] = field(default_factory=list)  # folders with a pyvenv.cfg or conda-meta
    linked: list[str] = field(default_factory=list)  # links to folders
    skipped: list[Skipped] = field(default_factory=list)
    complete: bool = True
    _started: float = field(default_factory=time.monotonic)
    _read: int = 0
    _more: int = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def is_late(self) -> bool:
        return self.seconds > self.limits.seconds

    def skip(self, path: str, reason: str) -> None:
        if len(self.skipped) < _MAX_SKIPPED:
            self.skipped.append(Skipped(path=path, reason=reason))
        else:
            self._more += 1

    def stop(self, reason: str) -> None:
        """Record once that a limit of the whole scan was reached."""
        if self.complete:
            self.skipped.insert(0, Skipped(path=".", reason=reason))
        self.complete = False

    def all_skipped(self) -> tuple[Skipped, ...]:
        more = [Skipped(path=".", reason=f"{self._more} more were skipped")] if self._more else []
        return (*self.skipped, *more)

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None and record why it was skipped."""
        if self.is_late:
            self.stop(f"time limit of {self.limits.seconds:g} s reached")
            return None
        try:
            # O_NONBLOCK: the name may have become a FIFO since the walk, which would block forever.
            fd = os.open(os.path.join(self.root, path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(fd, "rb") as file:
                about = os.fstat(fd)
                if not stat.S_ISREG(about.st_mode):
                    return None
                if about.st_size > self.limits.bytes_of_a_file:
                    self.skip(path, f"{about.st_size} bytes are too many to read")
                    return None
                if self._read + about.st_size > self.limits.bytes:
                    self.stop(f"more than {self.limits.bytes} bytes to read")
                    return None
                content = file.read(self.limits.bytes_of_a_file)
        except OSError as error:
            self.skip(path, f"cannot be read: {error.strerror}")
            return None
        self._read += len(content)
        if b"\0" in content:
            self.skip(path, "binary")
            return None
        return content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")


def walk(root: str, limits: ScanLimits) -> ProjectTree:
    tree = ProjectTree(root, limits)
    waiting: deque[tuple[str, int]] = deque([("", 0)])
    while waiting:
        folder, depth = waiting.popleft()
        if tree.is_late:
            tree.stop(f"time limit of {limits.seconds:g} s reached in {folder or '.'}")
            break
        for below in _read_folder(tree, folder):
            if depth + 1 > limits.depth:
                tree.skip(below, f"deeper than {limits.depth} folders")
            else:
                waiting.append((below, depth + 1))
        if len(tree.files) >= limits.files:
            tree.stop(f"more than {limits.files} files")
            break
    return tree


def _read_folder(tree: ProjectTree, folder: str) -> list[str]:
    """Record the files of a folder and return its subfolders."""
    limit = tree.limits.entries_of_a_folder
    try:
        with os.scandir(os.path.join(tree.root, folder)) as scan:
            entries = list(itertools.islice(scan, limit))
            if next(scan, None):
                tree.skip(folder or ".", f"more than {limit} entries; the rest counts as data")
    except OSError as error:
        tree.skip(folder or ".", f"cannot be listed: {error.strerror}")
        return []
    names = {entry.name for entry in entries}
    if folder and names & _OF_ENVIRONMENTS:
        tree.environments.append(folder)
        tree.skip(folder, "a Python environment")
        return []
    entries.sort(key=lambda entry: entry.name)
    subfolders = [path for entry in entries if (path := _record(tree, folder, entry))]
    return [path for path in subfolders if path.rsplit("/", 1)[-1] + UNFINISHED not in names]


def _record(tree: ProjectTree, folder: str, entry: os.DirEntry[str]) -> str | None:
    """Record one entry of a folder. Return its path if it is a subfolder to read."""
    path = f"{folder}/{entry.name}" if folder else entry.name
    if not path.isprintable():
        tree.skip(ascii(path), "the name is not printable")
        return None
    if entry.is_dir(follow_symlinks=False):
        return None if entry.name in _NOT_OURS or entry.name.endswith(".egg-info") else path
    try:
        is_file = entry.is_file()
    except OSError:
        is_file = False  # a link to itself
    if is_file and entry.is_symlink():  # a link must not leave the project
        is_file = os.path.realpath(entry.path).startswith(os.path.realpath(tree.root) + os.sep)
    if is_file:
        if len(tree.files) < tree.limits.files:
            tree.files.append(path)
    elif entry.is_symlink() and any(os.path.exists(os.path.join(entry.path, name)) for name in _OF_ENVIRONMENTS):
        tree.environments.append(path)
        tree.skip(path, "a Python environment")
    elif entry.is_symlink() and os.path.isdir(entry.path):
        tree.linked.append(path)
        tree.skip(path, "a link to a folder")
    return None


_MAX_YAML = 200_000


def read_yaml(tree: ProjectTree, path: str) -> Any:
    """Return the parsed content, or None and record why it was skipped."""
    import yaml

    text = tree.read(path)
    if text is None:
        return None
    if len(text) > _MAX_YAML:
        tree.skip(path, "too long for a configuration")
        return None
    try:
        # Aliases can multiply (ten levels of ten are 10 GB), and configurations do not need them.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            tree.skip(path, "YAML with aliases is not read")
            return None
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        tree.skip(path, f"not plain YAML: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
        return None


def leaves(value: Any, prefix: str = "", depth: int = 0) -> list[tuple[str, Any]]:
    """Flatten `{"a": {"b": 1}}` to `[("a.b", 1)]`."""
    if not isinstance(value, dict) or not value or depth > 12:
        return [(prefix, value)] if prefix else []
    found: list[tuple[str, Any]] = []
    for key, item in value.items():
        found += leaves(item, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    return found
