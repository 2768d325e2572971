"""Compare two lists of entries: the changed names, and a unified diff of limited size."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from labwright.compute.snapshot.files import Manifest, SnapshotDiff, SnapshotEntry, shown

MAX_TEXT = 200_000  # characters in all
MAX_FILE_BYTES = 256 * 1024  # larger files are only named
MAX_LINES = 5_000  # the matcher is quadratic at worst

Read = Callable[[SnapshotEntry], bytes | None]


def compare(old: Manifest, new: Manifest, read_old: Read, read_new: Read) -> SnapshotDiff:
    before = {entry.path: entry for entry in old.entries}
    after = {entry.path: entry for entry in new.entries}
    both = sorted(before.keys() & after.keys())
    changed = [path for path in both if _differs(before[path], after[path])]
    unproven = [path for path in both if not (before[path].hash and after[path].hash) and path not in changed]
    uncertain = [path for path in unproven if before[path].mtime_ns != after[path].mtime_ns]
    touched = sorted({*changed, *(before.keys() ^ after.keys())})
    chunks = (_chunk(path, before.get(path), after.get(path), read_old, read_new) for path in touched)
    text, truncated = "", False
    for chunk in chunks:
        if len(text) + len(chunk) > MAX_TEXT:
            text = f"{text}{chunk[: MAX_TEXT - len(text)]}\n… cut at {MAX_TEXT} characters\n"
            truncated = True
            break
        text += chunk
    return SnapshotDiff(
        added=_shown(after.keys() - before.keys()),
        removed=_shown(before.keys() - after.keys()),
        changed=_shown(changed),
        uncertain=_shown(uncertain),
        text=text,
        truncated=truncated,
    )


def _shown(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(shown(path) for path in sorted(paths))


def _differs(old: SnapshotEntry, new: SnapshotEntry) -> bool:
    """Compare content if both are stored, else sizes. Times do not count."""
    if old.hash and new.hash:
        return (old.hash, old.mode) != (new.hash, new.mode)
    return (old.size, old.mode) != (new.size, new.mode)


def _chunk(path: str, old: SnapshotEntry | None, new: SnapshotEntry | None, read_old: Read, read_new: Read) -> str:
    name = shown(path)
    title = f"diff {name}\n"
    if old and new and old.mode != new.mode:
        title += f"mode {old.mode:o} → {new.mode:o}\n"
    before, after = _lines(old, read_old), _lines(new, read_new)
    if before is None or after is None:
        return f"{title}(binary, large or not kept)\n"
    old_name, new_name = f"a/{name}" if old else "/dev/null", f"b/{name}" if new else "/dev/null"
    lines = difflib.unified_diff(before, after, old_name, new_name)
    return title + "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(entry: SnapshotEntry | None, read: Read) -> list[str] | None:
    """Return the lines, or None for a file that is only named."""
    if entry is None:
        return []
    data = read(entry) if entry.hash and entry.size <= MAX_FILE_BYTES else None
    if data is None or b"\0" in data:
        return None
    lines = data.decode("utf-8", "backslashreplace").splitlines(keepends=True)
    return lines if len(lines) <= MAX_LINES else None
