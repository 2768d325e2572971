"""Which ids and relative paths may become files. A name that leads out of its folder is refused."""

from __future__ import annotations

import os
import re
from pathlib import Path

from labwright.domain.errors import Invalid

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# These names are devices on some systems, and a workspace may be moved to one of them.
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
_LONGEST_PATH = 500


def safe_id(text: str) -> str:
    if not _ID.fullmatch(text) or text.lower() in _RESERVED:
        raise Invalid(
            f"{text[:80]!r} cannot be an id.",
            hint="Use up to 64 letters, digits, - and _, and start with a letter or a digit.",
        )
    return text


def safe_relative(text: str) -> str:
    """Return the path if it stays inside the workspace. Its parts are separated by slashes."""
    parts = text.split("/")
    unsafe = not text.isprintable() or "\\" in text or len(text) > _LONGEST_PATH
    if unsafe or any(part in ("", ".", "..") or part.lower() in _RESERVED for part in parts):
        raise Invalid(
            f"{text[:80]!r} is not a path inside the workspace.", hint="Use a relative path such as plan/notes.md."
        )
    return text


def inside(folder: Path, relative: str) -> Path:
    """Return the path of a file. Refuse symbolic links on the way to it."""
    path = folder
    for part in safe_relative(relative).split("/"):
        path = path / part
        if os.path.islink(path):
            raise Invalid(
                f"{relative} is or passes through a symbolic link.",
                hint="Replace the link with a regular file or folder.",
            )
    return path
