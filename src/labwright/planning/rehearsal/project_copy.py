"""A throw-away copy of a project: its code to write beside, its data behind links to where it lies, read-only."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from labwright.paths import STATE_DIR

DATA = "/tmp/labwright-project"  # noqa: S108 - where the sandbox shows the project itself, read-only
_SKIPPED = frozenset({".git", STATE_DIR, "__pycache__", "node_modules"})
_CODE_BYTES = 1 << 20  # a larger file is data
_ALL_BYTES = 200 << 20
_CODE_ENTRIES = 2_000  # a folder with more of them is data


def make_copy(project: Path, target: Path) -> None:
    """Whole, or made anew: a kill may have left half of one."""
    aside = target.with_name(f"{target.name}.new")
    for folder in (aside, target):
        shutil.rmtree(folder, ignore_errors=True)
    aside.mkdir(parents=True)
    left = [_ALL_BYTES]
    for relative, entry in _entries(project):
        _copy(entry, aside / relative, relative, left)
    aside.rename(target)


def _entries(project: Path, below: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(project / below) as found:
        entries = sorted((entry for entry in found if entry.name not in _SKIPPED), key=lambda entry: entry.name)
    for entry in entries:
        relative = f"{below}/{entry.name}" if below else entry.name
        yield relative, entry
        if entry.is_dir(follow_symlinks=False) and not _is_data(entry.path):
            yield from _entries(project, relative)


def _copy(entry: os.DirEntry[str], target: Path, relative: str, left: list[int]) -> None:
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), target)
    elif entry.is_dir():
        if _is_data(entry.path):
            os.symlink(f"{DATA}/{relative}", target)
        else:
            target.mkdir(parents=True, exist_ok=True)
    elif entry.is_file():
        _copy_file(entry, target, relative, left)


def _copy_file(entry: os.DirEntry[str], target: Path, relative: str, left: list[int]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    size = entry.stat().st_size
    if size > _CODE_BYTES or size > left[0]:
        os.symlink(f"{DATA}/{relative}", target)
        return
    left[0] -= size
    shutil.copy2(entry.path, target)


def _is_data(folder: str) -> bool:
    """Also an environment: its programs are found through the link as well."""
    names = set()
    with os.scandir(folder) as found:
        for entry in found:
            names.add(entry.name)
            if len(names) > _CODE_ENTRIES:
                return True
    return bool(names & {"pyvenv.cfg", "conda-meta"})
