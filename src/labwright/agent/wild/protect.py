"""Files that decide what a result means, known by their hash: once one has changed, no number after it counts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from labwright.domain.errors import Invalid
from labwright.planning.scan import ProjectScan
from labwright.workspace.digest import hash_file

NAMED = "named by whoever started the loop"
_MOST = 2000
Protected = dict[str, Any]
_Stamp = tuple[int, int, int, int]


def protect(project: Path, scan: ProjectScan, named: Iterable[str]) -> tuple[Protected, ...]:
    """Those that a person names, and those that the scan takes for evaluation."""
    reasons = {file.path: file.reason for file in scan.evaluation_files}
    reasons |= {path: NAMED for text in named for path in _files(project, text)}
    if len(reasons) > _MOST:
        raise Invalid(f"{len(reasons):,} files would be protected; at most {_MOST:,} can be.", hint="Name fewer.")
    return tuple(_entry(project, path, reason) for path, reason in sorted(reasons.items()))


def _files(project: Path, text: str) -> Iterator[str]:
    path = project / os.path.expanduser(text)
    if path.is_file():
        yield _shown(project, path)
    elif path.is_dir():
        yield from (_shown(project, found) for found in sorted(path.rglob("*")) if found.is_file())
    else:
        raise Invalid(f"There is no {text} to protect.", hint="Name a file or a folder that is there.")


def _shown(project: Path, path: Path) -> str:
    """Inside of the project from there, elsewhere as it is."""
    whole = Path(os.path.abspath(path))
    return str(whole.relative_to(project) if whole.is_relative_to(project) else whole)


def _entry(project: Path, path: str, reason: str) -> Protected:
    return {"path": path, "sha256": hash_file(project / path), "reason": reason}


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
                seen = self._seen[path] = (stamp, hash_file(self._project / path))
        except OSError:
            return ""  # gone, or no longer readable: changed
        return seen[1]
