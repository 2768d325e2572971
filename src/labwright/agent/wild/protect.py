"""Files that decide what a result means, known by their hash: once one has changed, no number after it counts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from labwright.domain.errors import Invalid
from labwright.hashes import hash_file
from labwright.planning.scan import ProjectScan

NAMED = "named by whoever started the loop"
_MOST = 2000
_NO_FILES = ("/proc", "/sys", "/dev")  # what is there has no content to hash
Protected = dict[str, Any]
_Stamp = tuple[int, int, int, int]


def protect(project: Path, scan: ProjectScan, named: Iterable[str]) -> tuple[Protected, ...]:
    """Those that a person names, and those that the scan takes for evaluation."""
    reasons = {file.path: file.reason for file in scan.evaluation_files}
    reasons |= {path: NAMED for text in named for path in _files(project, text)}
    if len(reasons) > _MOST:
        raise Invalid(f"More than {_MOST:,} files would be protected.", hint="Name fewer.", field=("protect",))
    return tuple(_entry(project, path, reason) for path, reason in sorted(reasons.items()))


def _files(project: Path, text: str) -> Iterator[str]:
    path = os.path.abspath(project / os.path.expanduser(text))
    if path.startswith(_NO_FILES) or not os.path.exists(path):
        raise Invalid(f"There is no {text} to protect.", hint="Name a file or a folder that is there.")
    if os.path.isfile(path):
        yield _shown(project, Path(path))
        return
    inside = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    yield from (_shown(project, found) for found in islice(inside, _MOST + 1) if found.is_file())


def _shown(project: Path, path: Path) -> str:
    """Inside of the project from there, elsewhere as it is."""
    return str(path.relative_to(project) if path.is_relative_to(project) else path)


def _entry(project: Path, path: str, reason: str) -> Protected:
    try:
        return {"path": path, "sha256": _hash_of(project / path), "reason": reason}
    except OSError as error:
        raise Invalid(
            f"{path} cannot be read: {error.strerror}.", hint="Only what can be read is protected."
        ) from error


def _hash_of(path: Path) -> str:
    """Data is often a link to where it lies; what counts is what a run would read."""
    return hash_file(Path(os.path.realpath(path)))


class Guard:
    """Reads a file again only when the system says that something about it is new."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._seen: dict[str, tuple[_Stamp, str]] = {}

    def changed(self, protected: Iterable[Protected]) -> list[str]:
        return [entry["path"] for entry in protected if self._hash(entry["path"]) != entry["sha256"]]

    def _hash(self, path: str) -> str:
        try:
            known = os.stat(self._project / path)
            stamp = (known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns)
            seen = self._seen.get(path)
            if seen is None or seen[0] != stamp:
                seen = self._seen[path] = (stamp, _hash_of(self._project / path))
        except OSError:
            return ""  # gone, or no longer readable: changed
        return seen[1]
