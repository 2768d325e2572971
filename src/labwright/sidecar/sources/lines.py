"""Whole lines of a file that grows, however it is written: half lines, progress bars, binary, lines without an end."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 1 << 20


class GrowingLines:
    """A line ends with a newline or, as progress bars do it, with a carriage return."""

    def __init__(self, path: str, position: int) -> None:
        self._path = path
        self.read_to = position
        self._half = b""
        self._too_long = False  # inside a line that is longer than we hold
        self._is_cut = False  # inside a line whose beginning was passed over

    def jump(self, position: int) -> None:
        self.read_to, self._half, self._too_long, self._is_cut = position, b"", False, True

    def read(self, limit: int, *, last: bool = False) -> Iterator[tuple[bytes | None, int]]:
        """Lines, each with the position after it; None for one that is too long. `last` also gives half a line."""
        block = self._block(limit)
        position = self.read_to - len(self._half)
        self.read_to += len(block)
        self._half, pieces = b"", (self._half + block).splitlines(keepends=True)
        if pieces and pieces[-1][-1:] not in (b"\n", b"\r"):
            self._half = pieces.pop()
        for piece in pieces:
            position += len(piece)
            if self._is_cut:
                self._is_cut = self._too_long = False
            elif self._too_long or len(piece) > LONGEST:
                self._too_long = False
                yield None, position
            else:
                yield piece, position
        if len(self._half) > LONGEST:
            self._half, self._too_long = b"", True
        if last and not self._is_cut and (self._half or self._too_long) and len(block) < limit:
            yield (None if self._too_long else self._half), self.read_to
            self._half, self._too_long = b"", False

    def _block(self, limit: int) -> bytes:
        try:
            with open(self._path, "rb") as file:
                file.seek(self.read_to)
                return file.read(max(0, limit))
        except FileNotFoundError:
            return b""
