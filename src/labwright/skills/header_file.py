"""Tokens in files that only their owner reads, for `curl -H @file`: everybody on a machine sees its command lines."""

from __future__ import annotations

import contextlib
from pathlib import Path

from labwright.files import write_whole
from labwright.tokens import has_expired

_FIELD = "X-Auth-Token: "


def keep_header(folder: Path, name: str, token: str) -> Path:
    """One file a name; a later token takes its place, so a path that was handed out stays good."""
    folder.mkdir(mode=0o700, exist_ok=True)
    _forget_expired(folder)
    path = folder / f"{name}.header"
    write_whole(path, f"{_FIELD}{token}\n".encode())  # made with mode 0600
    return path


def _forget_expired(folder: Path) -> None:
    for path in folder.glob("*.header"):
        with contextlib.suppress(FileNotFoundError):  # somebody else was faster
            if has_expired(path.read_text().strip().removeprefix(_FIELD)):
                path.unlink()
