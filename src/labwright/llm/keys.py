"""Keys: from the environment, or from a file that is its owner's alone. They are read when needed and kept nowhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from labwright.domain.errors import NotFound
from labwright.files import write_whole
from labwright.llm.endpoints import Endpoint
from labwright.llm.faults import KeyMissing, KeyRefused
from labwright.paths import key_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    value: str = field(repr=False)
    source: str  # where it was found, in words; this may be shown


def find_key(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> Key | None:
    """None where there is none and none is needed."""
    path = key_file(environ, endpoint.name)
    if value := environ.get(endpoint.key_variable, "").strip():
        return Key(value=_one_line(value, endpoint.key_variable), source=endpoint.key_variable)
    if path.exists():
        return Key(value=_one_line(_read_private(path), str(path)), source=str(path))
    if endpoint.needs_key:
        hint = f"Set {endpoint.key_variable} where the server is started, or write the key into {path} (chmod 600)."
        raise KeyMissing(f"There is no key for {endpoint.name}.", hint=hint)
    return None


def keep_key(endpoint: Endpoint, value: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Into the file that `find_key` reads, the owner's alone from its first byte on."""
    path = key_file(environ, endpoint.name)
    checked = _one_line(value.strip(), "this")
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    write_whole(path, f"{checked}\n".encode())
    return path


def drop_key(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> None:
    path = key_file(environ, endpoint.name)
    if not path.exists():
        raise NotFound(f"There is no key file for {endpoint.name}.", hint=f"It would be {path}.")
    path.unlink()


def _read_private(path: Path) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise KeyRefused(f"The key file {path} cannot be read: {error.strerror}.", hint=f"chmod 600 {path}") from None
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise KeyRefused(f"The key file {path} is no plain file.", hint="Write the key, and nothing else, into it.")
        if info.st_uid not in (os.getuid(), 0):
            raise KeyRefused(f"The key file {path} is another user's.", hint=f"Take it over: chown $USER {path}")
        if info.st_mode & 0o077:
            raise KeyRefused(f"Others may read the key file {path}.", hint=f"Make it yours alone: chmod 600 {path}")
        return file.read(10_000).decode(errors="replace").strip()


def _one_line(value: str, source: str) -> str:
    """Never shown, also not when it is wrong."""
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise KeyRefused(f"What {source} holds is not a key.", hint="It must be one word: the key and nothing else.")
    return value
