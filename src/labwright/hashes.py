"""What a file is known by: the SHA-256 of its bytes. What a folder of packages is: their names and versions."""

from __future__ import annotations

import hashlib
import os

_BLOCK = 1 << 20


def hash_file(path: str | os.PathLike[str], *, follow_links: bool = False) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW))
    total = hashlib.sha256()
    with os.fdopen(fd, "rb") as file:
        while block := file.read(_BLOCK):
            total.update(block)
    return total.hexdigest()


def content_of(path: str | os.PathLike[str]) -> str:
    """Of a link what it leads to, since that is what a reader gets. That nobody may read it is a fact, too."""
    try:
        return hash_file(path, follow_links=True)
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def packages_of(folder: str | os.PathLike[str]) -> str:
    """One look at one folder, however large the packages are."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith("-info"))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return hashlib.sha256("\n".join(names).encode(errors="surrogateescape")).hexdigest()
