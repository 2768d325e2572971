"""`manifest.yaml`: the facts about a plan besides its files. Each part of Labwright owns one top-level key."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from labwright.domain.errors import Invalid
from labwright.files import write_whole

Manifest = dict[str, Any]
CHANGING = threading.RLock()  # held from reading to writing a manifest: several writers own parts of it
_LARGEST = 4 << 20


def read_manifest(path: Path) -> Manifest:
    """Return the manifest, or an empty one if there is no file."""
    try:
        if path.stat().st_size > _LARGEST:
            raise _unreadable(path, "it is too large")
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    from labwright.workspace import plain_yaml

    try:
        found = plain_yaml.load(content)
    except ValueError as error:
        raise _unreadable(path, " ".join(str(error).split())) from error
    if not isinstance(found, dict):
        raise _unreadable(path, "it is not a mapping")
    return found


def write_manifest(path: Path, manifest: Manifest) -> None:
    from labwright.workspace import plain_yaml

    write_whole(path, plain_yaml.dump(manifest))


def _unreadable(path: Path, why: str) -> Invalid:
    return Invalid(f"{path} cannot be read: {why[:200]}.", hint="Fix the file by hand, or restore it from a copy.")
