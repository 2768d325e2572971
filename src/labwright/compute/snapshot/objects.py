"""Bytes by their SHA-256, each a file `objects/ab/<hash>`: one byte saying how it is packed, then the bytes.

An object appears by rename and so is whole or absent whenever a process dies. There is no fsync, as a submit waits
for this: after a power cut an object may be empty, which counts as absent, or damaged, which `get` notices.
"""

from __future__ import annotations

import secrets
import zlib
from hashlib import sha256
from pathlib import Path

from labwright.compute.snapshot.files import signature
from labwright.domain.errors import NotFound, StorageFailed

_RAW, _ZLIB = b"r", b"z"
_SAMPLE_BYTES = 64 * 1024


class Objects:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "objects"
        self._prefix = str(self.folder)  # `has` is asked once a file
        self._incoming = folder / "incoming"

    def put(self, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        if not self.has(digest):
            self.write_whole(self._path(digest), pack(data))
        return digest

    def has(self, digest: str) -> bool:
        seen = signature(f"{self._prefix}/{digest[:2]}/{digest}")
        return seen is not None and seen[2] > 0

    def get(self, digest: str) -> bytes:
        try:
            data = unpack(self._path(digest).read_bytes())
        except FileNotFoundError as error:
            raise NotFound(f"The snapshot's object {digest} is gone.") from error
        except (zlib.error, ValueError) as error:
            raise self._damaged(digest) from error
        if sha256(data).hexdigest() != digest:
            raise self._damaged(digest)
        return data

    def _damaged(self, digest: str) -> StorageFailed:
        path = self._path(digest)
        return StorageFailed(f"{path} is damaged.", hint="Delete it; the next run with that file writes it anew.")

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest

    def write_whole(self, target: Path, data: bytes) -> None:
        """Beside, then by rename; the random name keeps two processes apart."""
        aside = self._incoming / secrets.token_hex(8)
        try:
            try:
                _place(aside, target, data)
            except FileNotFoundError:  # the first in its folder
                for folder in (aside.parent, target.parent):
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _place(aside, target, data)
        except OSError as error:
            if aside.is_file():
                aside.unlink()
            raise StorageFailed(f"{target} cannot be written: {error.strerror}.") from error

    def leftovers(self) -> list[Path]:
        """What killed writers left; only while no writer is at work."""
        return list(self._incoming.iterdir()) if self._incoming.is_dir() else []


def _place(aside: Path, target: Path, data: bytes) -> None:
    aside.write_bytes(data)
    aside.replace(target)


def pack(data: bytes) -> bytes:
    """Compressed if that helps, judged by the head: media and weights do not shrink, and trying takes long."""
    head = zlib.compress(data[:_SAMPLE_BYTES], 1)
    if len(head) >= len(data[:_SAMPLE_BYTES]) * 0.95:
        return _RAW + data
    return _ZLIB + (head if len(data) <= _SAMPLE_BYTES else zlib.compress(data, 1))


def unpack(stored: bytes) -> bytes:
    kind, body = stored[:1], stored[1:]
    if kind not in (_RAW, _ZLIB):
        raise ValueError("not packed by Labwright")
    return zlib.decompress(body) if kind == _ZLIB else body
