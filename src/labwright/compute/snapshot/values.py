"""What a snapshot is: its entries, the manifest whose digest names it, and what callers are told."""

from __future__ import annotations

import json
import stat
from dataclasses import asdict, dataclass
from typing import Any

MAX_NAMES = 50  # of skipped files told to a caller: the answer goes into every run's row


@dataclass(frozen=True, slots=True)
class Entry:
    """One path. Without a hash its content was not kept; then size and time stand in for it."""

    path: str
    mode: int
    size: int
    hash: str | None
    mtime_ns: int | None = None

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    def to_dict(self) -> dict[str, Any]:
        data = {"path": self.path, "mode": f"{self.mode:o}", "hash": self.hash, "size": self.size}
        return data if self.hash else {**data, "mtime_ns": self.mtime_ns}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Entry:
        return cls(data["path"], int(data["mode"], 8), data["size"], data["hash"], data.get("mtime_ns"))


@dataclass(frozen=True, slots=True)
class Manifest:
    """Sorted entries: the digest of the bytes depends on content, paths and modes, not on when or where."""

    entries: tuple[Entry, ...]
    partial: bool

    def to_bytes(self) -> bytes:
        # ASCII with escapes: names that are not UTF-8 are lone surrogates here and survive only so.
        ordered = [entry.to_dict() for entry in sorted(self.entries, key=lambda entry: entry.path)]
        data = {"version": 1, "partial": self.partial, "entries": ordered}
        return json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        loaded = json.loads(data)
        return cls(tuple(Entry.from_dict(entry) for entry in loaded["entries"]), loaded["partial"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """`dirty`: the commit alone is not this code (a tracked file differs, or an untracked one is in it)."""

    hash: str
    git_commit: str | None
    dirty: bool | None
    files: int
    bytes: int
    skipped: tuple[str, ...] = ()  # recorded, but not kept: too big or not readable
    partial: bool = False  # the tree went over the caps on files or bytes
    notes: tuple[str, ...] = ()  # why it is partial, or why git could not be asked

    def to_dict(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**facts, "skipped": list(self.skipped), "notes": list(self.notes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDiff:
    """From the snapshot to the files of now. `uncertain` were too big to keep, so only size and time are known."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    uncertain: tuple[str, ...]
    text: str
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        names = ("added", "removed", "changed", "uncertain")
        return {**asdict(self), **{name: list(getattr(self, name)) for name in names}}


def shown(path: str) -> str:
    """A name that any encoder takes: bytes that are not UTF-8 become escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def shown_names(paths: list[str]) -> tuple[str, ...]:
    names = tuple(shown(path) for path in sorted(paths)[:MAX_NAMES])
    return names if len(paths) <= MAX_NAMES else (*names, f"… and {len(paths) - MAX_NAMES} more")
