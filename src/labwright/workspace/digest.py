"""One digest over a workspace's plan, IR, code and tests, and over the other facts that an approval covers.

Other files (reports, validation, results), caches and file modes do not count.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labwright.domain.errors import Conflict
from labwright.hashes import hash_file

COVERED = ("plan", "ir", "src", "tests")
_CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})


@dataclass(frozen=True, slots=True)
class Digest:
    files: dict[str, str]  # relative path: SHA-256
    facts: dict[str, str]  # other approved facts by name

    @property
    def value(self) -> str:
        return hashlib.sha256(self._canonical()).hexdigest()

    def _canonical(self) -> bytes:
        content = [sorted(self.files.items()), sorted(self.facts.items())]
        return json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "files": dict(sorted(self.files.items())), "facts": self.facts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Digest:
        found = cls(dict(data["files"]), dict(data["facts"]))
        if found.value != data["value"]:
            raise ValueError("the digest does not match its files")
        return found


def digest_of(folder: Path, facts: Mapping[str, str] | None = None) -> Digest:
    """Return the digest of a folder. `facts` are, for example, hashes of the project's code and the commands to run."""
    return Digest({path: hash_file(folder / path) for path in covered_files(folder)}, dict(facts or {}))


def covered_files(folder: Path) -> Iterator[str]:
    for top in COVERED:
        path = folder / top
        if os.path.lexists(path):
            _check_plain(path, top)
            yield from _files_below(path, top)


def _files_below(folder: Path, relative: str) -> Iterator[str]:
    if not folder.is_dir():
        yield relative
        return
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        name = f"{relative}/{entry.name}"
        _check_plain(Path(entry.path), name)
        if entry.name in _CACHES and entry.is_dir(follow_symlinks=False):
            continue
        yield from _files_below(Path(entry.path), name)


def _check_plain(path: Path, relative: str) -> None:
    """Refuse links, whose target could change without the digest, and pipes and devices, which have no content."""
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise Conflict(
            f"{relative!r} is {kind}.", hint="A plan may contain only regular files and folders. Replace it."
        )
    if not relative.isprintable():
        raise Conflict(f"The name {relative!r} contains characters that cannot be shown.", hint="Rename the file.")


def what_changed(before: Digest, after: Digest) -> list[str]:
    """Describe the differences for a reviewer. The list is empty if both are equal."""
    old, new = before.files, after.files
    found = [f"{path} was changed" for path in sorted(old.keys() & new.keys()) if old[path] != new[path]]
    found += [f"{path} was added" for path in sorted(new.keys() - old.keys())]
    found += [f"{path} was removed" for path in sorted(old.keys() - new.keys())]
    return found + [
        f"the {name} changed"
        for name in sorted(before.facts.keys() | after.facts.keys())
        if before.facts.get(name) != after.facts.get(name)
    ]
