"""Which ids and relative paths may become files. A name that leads out of its folder is refused before it is a path."""

from __future__ import annotations

import os
import re
from pathlib import Path

from labwright.domain.errors import Invalid

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# Names that are devices on some systems: a workspace may be moved to one.
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
_LONGEST_PATH = 500


def safe_id(text: str) -> str:
    if not _ID.fullmatch(text) or text.lower() in _RESERVED:
        raise Invalid(
            f"{text[:80]!r} cannot be an id.",
            hint="Use letters, digits, - and _, 64 at most, beginning with a letter or digit.",
        )
    return text


def safe_relative(text: str) -> str:
    """A path below the workspace, parted by slashes."""
    parts = text.split("/")
    unsafe = not text.isprintable() or "\\" in text or len(text) > _LONGEST_PATH
    if unsafe or any(part in ("", ".", "..") or part.lower() in _RESERVED for part in parts):
        raise Invalid(
            f"{text[:80]!r} is not a path inside of the workspace.", hint="Use a relative path such as plan/notes.md."
        )
    return text


def inside(folder: Path, relative: str) -> Path:
    """The file, if no link on the way to it leads elsewhere."""
    path = folder
    for part in safe_relative(relative).split("/"):
        path = path / part
        if os.path.islink(path):
            raise Invalid(f"{relative} leads over a link.", hint="A workspace holds plain files; replace the link.")
    return path
