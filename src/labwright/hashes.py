"""Hashes: the SHA-256 of a file's bytes, and of the package names and versions in a folder."""

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
    """Return the hash of the content, following links. An unreadable file gives a text instead of a hash."""
    try:
        return hash_file(path, follow_links=True)
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def packages_of(folder: str | os.PathLike[str]) -> str:
    """Hash the names and versions of the packages in a folder without reading the packages."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith("-info"))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return hashlib.sha256("\n".join(names).encode(errors="surrogateescape")).hexdigest()
