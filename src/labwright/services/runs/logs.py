"""Read a run's output: a piece by position, matching lines, or a short digest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.clock import rfc3339
from labwright.domain.errors import Invalid
from labwright.domain.gpu import CROWDING_WORDS, tells_of_crowding
from labwright.domain.run import Run
from labwright.files import read_json
from labwright.paths import RunPaths

MAX_BYTES = 1 << 20
_GREP_SCAN_BYTES = 2 << 30  # takes seconds; twice the default size cap
_GREP_BLOCK = 1 << 20
_GREP_LONGEST_LINE = 4 << 20  # longer lines are searched in parts
_GREP_LINES = 500
_DIGEST_SCAN_BYTES = 4 << 20
_DIGEST_LINES = 20
_DIGEST_ERROR_LINES = 60
_LINE_LENGTH = 500
_ERROR = re.compile(
    rb"(?:^|\r)(\S*(?:Error|Exception)\b|[^\r\n]*\b(?:error|fatal|Segmentation fault|Killed)\b)",
    re.MULTILINE,
)
_LINE_END = re.compile(rb"[\r\n]")
_TRACEBACK = b"Traceback (most recent call last)"
_ERROR_WORDS = (b"Error", b"Exception", b"error", b"fatal", b"Segmentation fault", b"Killed")
_CROWDING = tuple(word.encode() for word in CROWDING_WORDS)
_CROWDING_TRIES = 20  # matches of one word to check; not every match is about contention


def read(lab: Lab, run: Run, offset: int, limit: int) -> dict[str, Any]:
    """Return a piece of the output, cut at whole characters. A negative offset counts from the end."""
    paths = lab.paths.run(run.id)
    size = _size(paths)
    start = max(0, size + offset) if offset < 0 else min(offset, size)
    block = _read_block(paths, start, min(limit, MAX_BYTES))
    read_to = start + len(block)
    gap = _gap(paths)
    if gap and start < gap["end"] and read_to > gap["start"]:
        content, end = _up_to_gap(block, start, gap).decode(errors="replace"), gap["end"]
        # Report the whole gap at once, so that paging backwards skips it.
        start, read_to = min(start, gap["start"]), end
    else:
        if offset < 0 and start > 0:
            start, block = _from_whole_character(start, block)
        at_end = read_to == size
        block = _to_whole_character(block, more_to_come=at_end and not run.is_terminal, at_end=at_end)
        content, end = block.decode(errors="replace"), start + len(block)
    return {
        "content": content,
        "offset": start,
        "total_size": size,
        "has_more_before": start > 0,
        "has_more_after": read_to < size,
        "next_offset": end,
        "removed_at": _removed_at(paths),
    }


def read_bytes(lab: Lab, run: Run, offset: int, limit: int) -> bytes:
    """Return the bytes as they were written. A message replaces the part that the size cap dropped."""
    paths = lab.paths.run(run.id)
    block = _read_block(paths, offset, min(limit, MAX_BYTES))
    gap = _gap(paths)
    if gap and offset < gap["end"] and offset + len(block) > gap["start"]:
        return _up_to_gap(block, offset, gap)
    return block


def grep(lab: Lab, run: Run, pattern: str, *, ignore_case: bool = False) -> dict[str, Any]:
    """Return the newest lines that contain a text. `offset` is where the search stopped."""
    paths = lab.paths.run(run.id)
    size = _size(paths)
    needle = pattern.encode()
    if not needle:
        raise Invalid("The search text is empty.")
    if ignore_case:
        needle = needle.lower()
    matches: list[bytes] = []  # newest first
    start = size
    for start, block in _blocks_of_lines(paths, size):
        matches += reversed(_lines_with(needle, block, ignore_case))
        if len(matches) > _GREP_LINES or size - start >= _GREP_SCAN_BYTES:
            break
    return {
        "content": "\n".join(_clip(line) for line in reversed(matches[:_GREP_LINES])),
        "offset": start,
        "total_size": size,
        "has_more_before": start > 0 or len(matches) > _GREP_LINES,
        "has_more_after": False,
        "next_offset": size,
        "removed_at": _removed_at(paths),
    }


def _lines_with(needle: bytes, block: bytes, ignore_case: bool) -> list[bytes]:
    lowered = block.lower() if ignore_case else block
    if needle not in lowered:
        return []  # most blocks; this is much faster than splitting into lines
    matches = []
    for line, searched in zip(block.split(b"\n"), lowered.split(b"\n"), strict=True):
        if needle in searched:
            last_state = searched.rfind(b"\r", 0, searched.rfind(needle)) + 1  # of a progress bar
            matches.append(_line_around(line, searched.find(needle, last_state)))
    return matches


def _blocks_of_lines(paths: RunPaths, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines with their offsets, from the end backwards, without the dropped part."""
    gap = _gap(paths)
    for first, end in [(gap["end"], size), (0, gap["start"])] if gap else [(0, size)]:
        line_end = b""  # of a line that starts in an earlier block
        while end > first:
            start = max(first, end - _GREP_BLOCK)
            block = _read_block(paths, start, end - start) + line_end
            cut = block.find(b"\n") + 1 or len(block)
            if start == first or cut > _GREP_LONGEST_LINE:
                cut = 0
            line_end = block[:cut]
            yield start + cut, block[cut:]
            end = start


def digest(lab: Lab, run: Run) -> dict[str, Any]:
    """Return how the run ended, the first error and the last lines. The size is limited, however long the log is."""
    paths = lab.paths.run(run.id)
    size = _size(paths)
    head = _read_block(paths, 0, _DIGEST_SCAN_BYTES)
    tail = _read_block(paths, max(0, size - _DIGEST_SCAN_BYTES), _DIGEST_SCAN_BYTES)
    last_lines = tail.rstrip(b"\n").rsplit(b"\n", _DIGEST_LINES)[-_DIGEST_LINES:] if tail else []
    return {
        "run_id": run.id,
        "status": run.status,
        "status_reason": run.status_reason,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "error": run.error,
        "first_error": _first_error(head) or _first_error(tail),
        "gpu_contention": _contention_lines(tail),
        # A progress bar is shown in its last state.
        "last_lines": [_clip(line.rstrip(b"\r").rsplit(b"\r", 1)[-1]) for line in last_lines],
        "total_size": size,
        "gap": _gap(paths),
        "removed_at": _removed_at(paths),
        "warnings": list(run.warnings),
    }


def _first_error(block: bytes) -> str | None:
    """Return the first traceback, or the first line that mentions an error."""
    start = _find_error(block)
    if start is None:
        return None
    lines = block[start : start + 64 * 1024].split(b"\n")
    if not lines[0].startswith(_TRACEBACK):
        return _clip(lines[0].split(b"\r", 1)[0])
    end = next((i for i, line in enumerate(lines[1:], 1) if line and not line.startswith((b" ", b"\t"))), 1)
    lines = lines[: end + 1]
    if len(lines) > _DIGEST_ERROR_LINES:
        half = _DIGEST_ERROR_LINES // 2
        lines = [*lines[:half], b"  ...", *lines[-half:]]
    return "\n".join(_clip(line) for line in lines)


def _find_error(block: bytes) -> int | None:
    start = block.find(_TRACEBACK)
    if start >= 0:
        return start
    if not any(word in block for word in _ERROR_WORDS):
        return None  # ten times faster than the pattern
    match = _ERROR.search(block)
    return match.start(1) if match else None


def first_error(lab: Lab, run: Run) -> dict[str, Any]:
    """Return the offset of the line with the first error. `searched` is how far the search went."""
    paths = lab.paths.run(run.id)
    size = _size(paths)
    read_to = 0
    for start, block in _blocks_from_start(paths, size):
        place = _find_error(block)
        read_to = start + len(block)
        if place is not None:
            offset = start + block.rfind(b"\n", 0, place) + 1
            return {"offset": offset, "searched": read_to, "total_size": size}
        if read_to >= _GREP_SCAN_BYTES:
            break
    return {"offset": None, "searched": read_to, "total_size": size}


def _blocks_from_start(paths: RunPaths, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, as large as the digest's so that both find the same error."""
    gap = _gap(paths)
    for start, end in [(0, gap["start"]), (gap["end"], size)] if gap else [(0, size)]:
        while start < end:
            block = _read_block(paths, start, min(end - start, _DIGEST_SCAN_BYTES))
            if not block:
                return  # the file was removed
            if start + len(block) < end:
                block = block[: block.rfind(b"\n") + 1] or block
            yield start, block
            start += len(block)


def _contention_lines(block: bytes) -> list[str]:
    """Return lines about GPU contention: the first match of each word, in order."""
    lowered = block.lower()
    matches = []
    for word in _CROWDING:
        place = -1
        for _ in range(_CROWDING_TRIES):
            place = lowered.find(word, place + 1)
            if place < 0:
                break
            line = _clip(_line_around(block, place))
            if tells_of_crowding(line):
                matches.append((place, line))
                break
    return list(dict.fromkeys(line for _, line in sorted(matches)))[:5]


def _line_around(block: bytes, position: int) -> bytes:
    """Return the line at a position, or the text around the position if the line is long."""
    start = max(block.rfind(b"\n", 0, position), block.rfind(b"\r", 0, position)) + 1
    stop = _LINE_END.search(block, position, position + 4 * _LINE_LENGTH)
    end = stop.start() if stop else position + 4 * _LINE_LENGTH
    before = _LINE_LENGTH // 2
    if end - start <= _LINE_LENGTH or position - start <= before:
        return block[start:end]
    return "…".encode() + _from_whole_character(0, block[position - before : end])[1]


def _clip(line: bytes) -> str:
    text = line.strip(b"\0").decode(errors="replace").rstrip("\r")  # a capped log has zeros in its dropped middle
    return text if len(text) <= _LINE_LENGTH else f"{text[:_LINE_LENGTH]}…"


def _from_whole_character(start: int, block: bytes) -> tuple[int, bytes]:
    """Drop the end of a UTF-8 character if the piece starts inside of it."""
    cut = next((i for i, byte in enumerate(block[:4]) if byte & 0xC0 != 0x80), 0)
    return start + cut, block[cut:]


def _to_whole_character(block: bytes, *, more_to_come: bool, at_end: bool) -> bytes:
    """Leave an incomplete last character for the next piece, unless this piece would stay empty forever."""
    incomplete = 0  # bytes of a UTF-8 character that is cut off
    for length, byte in enumerate(reversed(block[-3:]), 1):
        if byte >= 0xC0:
            whole = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            incomplete = length if length < whole else 0
        if byte >= 0xC0 or byte < 0x80:
            break
    if more_to_come or (not at_end and incomplete < len(block)):
        return block[: len(block) - incomplete]
    return block


def size_of(lab: Lab, run_id: str) -> int:
    return _size(lab.paths.run(run_id))


def _size(paths: RunPaths) -> int:
    try:
        return os.path.getsize(paths.output)
    except FileNotFoundError:
        return 0


def _removed_at(paths: RunPaths) -> str | None:
    """Return when `gc` removed the output, or None if there is output."""
    if os.path.exists(paths.output):
        return None
    try:
        return rfc3339(os.path.getmtime(paths.output_removed))
    except FileNotFoundError:
        return None


def _read_block(paths: RunPaths, start: int, length: int) -> bytes:
    try:
        with open(paths.output, "rb") as file:
            # pread instead of seek: seek fails for offsets that the file system cannot hold.
            return os.pread(file.fileno(), length, start)
    except FileNotFoundError:
        return b""


def _gap(paths: RunPaths) -> dict[str, int] | None:
    try:
        gap: dict[str, int] = read_json(paths.output_gap)
    except FileNotFoundError:
        return None
    return gap


def _up_to_gap(block: bytes, start: int, gap: dict[str, int]) -> bytes:
    """Return the block up to the dropped part, followed by a message about it."""
    before = block[: max(0, gap["start"] - start)]
    dropped = (gap["end"] - gap["start"]) / 1e6
    notice = f"\n[labwright: {dropped:.1f} MB left out here; the log-size cap keeps the head and the tail]\n"
    return before + notice.encode()
