"""One folder's files as last seen: asks git and reads bytes only where a signature says that something changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate

from labwright.compute.snapshot.files import Known, Signature, all_as_seen, look, none_there, signature, unkept
from labwright.compute.snapshot.listing import Listing, list_tree
from labwright.compute.snapshot.values import Entry, Manifest
from labwright.domain.errors import NotFound

MAX_BYTES = 256 * 1024 * 1024  # kept of one tree; more is data, and a submit would wait for it


def hash_only(data: bytes) -> str:
    return sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Scan:
    manifest: Manifest
    listing: Listing


def _identity(folder: str) -> tuple[int, int]:
    try:
        info = os.stat(folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"There is no folder {folder}.") from error
    return (info.st_dev, info.st_ino)


class Tree:
    """Not thread-safe."""

    def __init__(self, name: str, max_file_bytes: int) -> None:
        self.name = name  # may be a link, or lead through one
        self.root = name
        self._folder: tuple[int, int] | None = None
        self._limit = max_file_bytes
        self._known: dict[str, Known] = {}
        self._fresh: dict[str, Known] = {}  # edited so shortly before being read that a signature proves nothing
        self._present: list[tuple[str, Signature]] = []
        self._absent: list[str] = []  # files that would change the listing if they appeared
        self._listing_settled = False
        self._hidden: frozenset[str] = frozenset()
        self._hidden_names: set[str] = set()

    def hide(self, paths: frozenset[str]) -> bool:
        """Leave these out, by their real paths. Answers whether that is new."""
        changed = paths != self._hidden
        self._hidden, self._hidden_names = paths, {os.path.basename(path) for path in paths}
        return changed

    def without_hidden(self, manifest: Manifest) -> Manifest:
        entries = tuple(entry for entry in manifest.entries if not self._is_hidden(entry.path))
        return Manifest(entries, manifest.partial)

    def _is_hidden(self, path: str) -> bool:
        if os.path.basename(path) not in self._hidden_names:  # most files; a real path costs a walk
            return False
        return os.path.realpath(f"{self.root}/{path}") in self._hidden

    def is_unchanged(self, clock: Callable[[], int]) -> bool:
        """Since the last scan: one look a file and folder, and the bytes of fresh files."""
        if not self._listing_settled or self._folder != _identity(self.name):
            return False
        if not (all_as_seen(self._present) and none_there(self._absent)):
            return False
        return all(self._is_same(known, clock()) for known in list(self._fresh.values()))

    def _is_same(self, known: Known, now: int) -> bool:
        path = known.entry.path
        again = look(f"{self.root}/{path}", path, now, self._limit, hash_only)
        if again is None or again.entry != known.entry or again.signature != known.signature:
            return False
        if again.settled:
            self._known[path] = again
            del self._fresh[path]
        return True

    def scan(self, now: int, keep: Callable[[bytes], str], has: Callable[[str], bool]) -> Scan:
        """List anew, and read what is not known or no longer kept; `now` is the file system's time before that."""
        self._folder, self.root = _identity(self.name), os.path.realpath(self.name)
        listing = list_tree(self.root)
        listing.leave_out(self._is_hidden)
        found = self._within_budget(listing)
        for path, known in found.items():
            if known is None or (known.entry.hash and not has(known.entry.hash)):
                found[path] = look(f"{self.root}/{path}", path, now, self._limit, keep)
        self._remember(listing, {path: known for path, known in found.items() if known}, now)
        return Scan(self._manifest(listing), listing)

    def _within_budget(self, listing: Listing) -> dict[str, Known | None]:
        """What is known already, None for what is to be read. Over the budget, size and time have to do."""
        seen = {path: signature(f"{self.root}/{path}") for path in listing.files()}
        present = {path: info for path, info in seen.items() if info}
        found = {path: self._recall(path, info) for path, info in present.items()}
        over = self._over_budget(present, set(listing.tracked))
        for path in over:
            found[path] = unkept(path, present[path])
        if over:
            listing.partial = True
            listing.notes.append(f"More than {MAX_BYTES >> 20} MB; the rest is recorded by size and time only.")
        return found

    def _recall(self, path: str, info: Signature) -> Known | None:
        known = self._known.get(path)
        usable = known and known.settled and known.entry.hash and known.signature == info
        return known if usable else None

    def _over_budget(self, present: dict[str, Signature], tracked: set[str]) -> list[str]:
        """Tracked files are kept first, then small ones: those are the likelier code."""
        kept = [(path, info[2]) for path, info in present.items() if info[2] <= self._limit]
        if sum(size for _, size in kept) <= MAX_BYTES:
            return []
        kept.sort(key=lambda item: (item[0] not in tracked, item[1], item[0]))
        totals = accumulate(size for _, size in kept)
        return [path for (path, _), total in zip(kept, totals, strict=True) if total > MAX_BYTES]

    def _remember(self, listing: Listing, found: dict[str, Known], now: int) -> None:
        self._known = found
        self._fresh = {path: known for path, known in found.items() if not known.settled}
        self._present = [(path, seen) for path, seen in listing.watch.items() if seen]
        self._present += [(f"{self.root}/{path}", known.signature) for path, known in found.items()]
        self._absent = [path for path, seen in listing.watch.items() if not seen]
        self._listing_settled = listing.is_settled(now)

    def _manifest(self, listing: Listing) -> Manifest:
        entries = [known.entry for known in self._known.values()]
        entries += [Entry(path or ".", stat.S_IFDIR, 0, None, 0) for path in listing.unreadable]
        return Manifest(tuple(entries), listing.partial)
