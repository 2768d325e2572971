"""A project of a few files, and the scan's result for one of its scripts."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from labwright.planning.scan import EntryPoint, Flag, scan_project


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


def scanned(folder: Path, files: dict[str, str], path: str = "train.py") -> EntryPoint:
    entry = scan_project(write(folder, files), environ={"PATH": ""}).entry_point(path)
    assert entry is not None
    return entry


def settable(entry: EntryPoint) -> dict[str, Flag]:
    return {flag.name: flag for flag in entry.flags if flag.is_settable}


def facts(flag: Flag | None, *names: str) -> tuple[Any, ...]:
    assert flag is not None
    return tuple(getattr(flag, name) for name in names)
