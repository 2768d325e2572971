"""Reading a run's output: a piece by position, the lines that match, and a digest of bounded size."""

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
_GREP_SCAN_BYTES = 2 << 30  # seconds of work; twice what the size cap keeps by default
_GREP_BLOCK = 1 << 20
_GREP_LONGEST_LINE = 4 << 20  # what is longer is looked at in parts
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
_SPEAKS_OF_ERROR = (b"Error", b"Exception", b"error", b"fatal", b"Segmentation fault", b"Killed")
_CROWDING = tuple(word.encode() for word in CROWDING_WORDS)
_CROWDING_TRIES = 20  # places of one word that are looked at: it may also speak of something else


def read(lab: Lab, run: Run, offset: int, limit: int) -> dict[str, Any]:
    """A piece of the output, of whole characters; a negative offset counts from the end."""
    paths = lab.paths.run(run.id)
    size = _size(paths)
    start = max(0, size + offset) if offset < 0 else min(offset, size)
    block = _read_block(paths, start, min(limit, MAX_BYTES))
    read_to = start + len(block)
    gap = _gap(paths)
    if gap and start < gap["end"] and read_to > gap["start"]:
        content, end = _up_to_gap(block, start, gap).decode(errors="replace"), gap["end"]
        start, read_to = min(start, gap["start"]), end  # told as a whole, so that nobody meets it again on the way up
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
    """A piece as it was written, byte by byte; only what the size cap dropped is told in words."""
    paths = lab.paths.run(run.id)
    block = _read_block(paths, offset, min(limit, MAX_BYTES))
    gap = _gap(paths)
    if gap and offset < gap["end"] and offset + len(block) > gap["start"]:
        return _up_to_gap(block, offset, gap)
    return block


def grep(lab: Lab, run: Run, pattern: str, *, ignore_case: bool = False) -> dict[str, Any]:
    """The newest lines with a text, bounded in number and length; `offset` tells how far back was looked."""
    paths = lab.paths.run(run.id)
    size = _size(paths)
    needle = pattern.encode()
    if not needle:
        raise Invalid("The text to look for is empty.")
    if ignore_case:
        needle = needle.lower()
    found: list[bytes] = []  # newest first
    start = size
    for start, block in _blocks_of_lines(paths, size):
        found += reversed(_lines_with(needle, block, ignore_case))
        if len(found) > _GREP_LINES or size - start >= _GREP_SCAN_BYTES:
            break
    return {
        "content": "\n".join(_clip(line) for line in reversed(found[:_GREP_LINES])),
        "offset": start,
        "total_size": size,
        "has_more_before": start > 0 or len(found) > _GREP_LINES,
        "has_more_after": False,
        "next_offset": size,
        "removed_at": _removed_at(paths),
    }


def _lines_with(needle: bytes, block: bytes, ignore_case: bool) -> list[bytes]:
    lowered = block.lower() if ignore_case else block
    if needle not in lowered:
        return []  # most blocks: finding one text in many bytes is much faster than finding lines
    pairs = zip(block.split(b"\n"), lowered.split(b"\n"), strict=True)
    return [_part_with(needle, line, searched) for line, searched in pairs if needle in searched]


def _part_with(needle: bytes, line: bytes, searched: bytes) -> bytes:
    """Of what a progress bar wrote over and over, the last state with the text."""
    state = searched.rfind(b"\r", 0, searched.rfind(needle)) + 1
    return _line_around(line, searched.find(needle, state))


def _blocks_of_lines(paths: RunPaths, size: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines in large pieces and where they begin, from the end backwards; without what the size cap dropped."""
    gap = _gap(paths)
    for first, end in [(gap["end"], size), (0, gap["start"])] if gap else [(0, size)]:
        rest = b""  # the end of a line that began earlier
        while end > first:
            start = max(first, end - _GREP_BLOCK)
            block = _read_block(paths, start, end - start) + rest
            cut = block.find(b"\n") + 1 or len(block)
            if start == first or cut > _GREP_LONGEST_LINE:
                cut = 0
            rest = block[:cut]
            yield start + cut, block[cut:]
            end = start


def digest(lab: Lab, run: Run) -> dict[str, Any]:
    """What a reader needs first, of bounded size whatever the log's: how it ended, the first error, the last lines."""
    paths = lab.paths.run(run.id)
    size = _size(paths)
    head = _read_block(paths, 0, _DIGEST_SCAN_BYTES)
    tail = _read_block(paths, max(0, size - _DIGEST_SCAN_BYTES), _DIGEST_SCAN_BYTES)
    error = _first_error(head) or _first_error(tail)
    return {
        "run_id": run.id,
        "status": run.status,
        "status_reason": run.status_reason,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "error": run.error,
        "first_error": error,
        "gpu_contention": _contention_lines(tail),
        "last_lines": _last_lines(tail) if tail else [],
        "total_size": size,
        "gap": _gap(paths),
        "removed_at": _removed_at(paths),
        "warnings": list(run.warnings),
    }


def _last_lines(block: bytes) -> list[str]:
    """As they were left: of what a progress bar wrote over and over, its last state."""
    lines = block.rstrip(b"\n").rsplit(b"\n", _DIGEST_LINES)[-_DIGEST_LINES:]
    return [_clip(line.rstrip(b"\r").rsplit(b"\r", 1)[-1]) for line in lines]


def _first_error(block: bytes) -> str | None:
    """The first traceback with all its frames, else the first line that speaks of an error."""
    start = _place_of_error(block)
    if start is None:
        return None
    lines = block[start : start + 64 * 1024].split(b"\n")
    if not lines[0].startswith(_TRACEBACK):
        return _clip(lines[0].split(b"\r", 1)[0])
    end = next((i for i, line in enumerate(lines[1:], 1) if line and not line.startswith((b" ", b"\t"))), 1)
    return "\n".join(_clip(line) for line in _middle_out(lines[: end + 1]))


def _place_of_error(block: bytes) -> int | None:
    start = block.find(_TRACEBACK)
    if start >= 0:
        return start
    if not any(word in block for word in _SPEAKS_OF_ERROR):
        return None  # plain searches are ten times faster than the pattern
    match = _ERROR.search(block)
    return match.start(1) if match else None


def first_error(lab: Lab, run: Run) -> dict[str, Any]:
    """Where the line of the first error begins; `searched` tells how far it was looked for."""
    paths = lab.paths.run(run.id)
    size = _size(paths)
    read_to = 0
    for start, block in _blocks_from_start(paths, size):
        place = _place_of_error(block)
        read_to = start + len(block)
        if place is not None:
            offset = start + block.rfind(b"\n", 0, place) + 1
            return {"offset": offset, "searched": read_to, "total_size": size}
        if read_to >= _GREP_SCAN_BYTES:
            break
    return {"offset": None, "searched": read_to, "total_size": size}


def _blocks_from_start(paths: RunPaths, size: int) -> Iterator[tuple[int, bytes]]:
    """As large as the digest's, so that both find the same; whole lines, without what the size cap dropped."""
    gap = _gap(paths)
    for start, end in [(0, gap["start"]), (gap["end"], size)] if gap else [(0, size)]:
        while start < end:
            block = _read_block(paths, start, min(end - start, _DIGEST_SCAN_BYTES))
            if not block:
                return  # removed meanwhile
            if start + len(block) < end:
                block = block[: block.rfind(b"\n") + 1] or block
            yield start, block
            start += len(block)


def _contention_lines(block: bytes) -> list[str]:
    """Lines that tell of a crowded GPU, the first of each word, in order."""
    lowered = block.lower()
    found = [_first_crowding(block, lowered, word) for word in _CROWDING]
    return list(dict.fromkeys(line for _, line in sorted(filter(None, found))))[:5]


def _first_crowding(block: bytes, lowered: bytes, word: bytes) -> tuple[int, str] | None:
    place = lowered.find(word)
    for _ in range(_CROWDING_TRIES):
        if place < 0:
            return None
        line = _clip(_line_around(block, place))
        if tells_of_crowding(line):
            return place, line
        place = lowered.find(word, place + 1)
    return None


def _middle_out(lines: list[bytes]) -> list[bytes]:
    if len(lines) <= _DIGEST_ERROR_LINES:
        return lines
    half = _DIGEST_ERROR_LINES // 2
    return [*lines[:half], b"  ...", *lines[-half:]]


def _line_around(block: bytes, position: int) -> bytes:
    """The line at a position, or the state of a progress bar; of a long one, as much around it as is shown."""
    start = max(block.rfind(b"\n", 0, position), block.rfind(b"\r", 0, position)) + 1
    stop = _LINE_END.search(block, position, position + 4 * _LINE_LENGTH)
    end = stop.start() if stop else position + 4 * _LINE_LENGTH
    before = _LINE_LENGTH // 2
    if end - start <= _LINE_LENGTH or position - start <= before:
        return block[start:end]
    return "…".encode() + _from_whole_character(0, block[position - before : end])[1]


def _clip(line: bytes) -> str:
    text = line.strip(b"\0").decode(errors="replace").rstrip("\r")  # a capped log has zeros where its middle was
    return text if len(text) <= _LINE_LENGTH else f"{text[:_LINE_LENGTH]}…"


def _from_whole_character(start: int, block: bytes) -> tuple[int, bytes]:
    """Counted from the end, a piece may begin in the middle of a UTF-8 character: leave out what is left of it."""
    cut = next((i for i, byte in enumerate(block[:4]) if byte & 0xC0 != 0x80), 0)
    return start + cut, block[cut:]


def _to_whole_character(block: bytes, *, more_to_come: bool, at_end: bool) -> bytes:
    """Leave the beginning of a character for the next piece, but never a piece that would then be empty for ever."""
    cut = _unfinished(block)
    if more_to_come or (not at_end and cut < len(block)):
        return block[: len(block) - cut]
    return block


def _unfinished(block: bytes) -> int:
    """How many bytes at the end are the beginning of a UTF-8 character."""
    for length, byte in enumerate(reversed(block[-3:]), 1):
        if byte >= 0xC0:
            return length if length < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0


def size_of(lab: Lab, run_id: str) -> int:
    return _size(lab.paths.run(run_id))


def _size(paths: RunPaths) -> int:
    try:
        return os.path.getsize(paths.output)
    except FileNotFoundError:
        return 0


def _removed_at(paths: RunPaths) -> str | None:
    """When gc removed the output; one that is still there, or was written since, is not removed."""
    if os.path.exists(paths.output):
        return None
    try:
        return rfc3339(os.path.getmtime(paths.output_removed))
    except FileNotFoundError:
        return None


def _read_block(paths: RunPaths, start: int, length: int) -> bytes:
    try:
        with open(paths.output, "rb") as file:
            # Not by seek, which fails beyond what the file system could ever hold; nothing is there either way.
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
    """Where the size cap dropped the middle, say so once instead of showing zeros; the next piece begins behind it."""
    before = block[: max(0, gap["start"] - start)]
    dropped = (gap["end"] - gap["start"]) / 1e6
    words = f"\n[labwright: {dropped:.1f} MB left out here; the log-size cap keeps the head and the tail]\n"
    return before + words.encode()
