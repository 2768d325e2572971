"""Keep a runaway output from filling the disk: its head and tail stay, the middle becomes a hole in the file.

The job writes to the file itself, so it can be neither cut nor rewritten; a hole frees the blocks and moves no
offset. Readers fill it with one line that says what is missing (`services/runs/logs.py`).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable

from labwright.files import read_json, write_json
from labwright.paths import RunPaths

_FALLOC_PUNCH_KEEP_SIZE = 0x03
_BLOCK = 4096
_SPARED_BYTES = 64 << 20


class OutputCap:
    def __init__(self, paths: RunPaths, cap_bytes: int) -> None:
        self._paths = paths
        self._cap = cap_bytes
        self._supported = cap_bytes > 0
        self._end = self._known_end()

    def apply(self, size: int, read_to: int, pass_over: Callable[[int], None]) -> None:
        """Once the kept part exceeds the cap, drop all but a quarter at the head and a quarter at the tail.

        What nobody has read for metrics yet is spared for a while; then the reader is told to pass it over.
        """
        head = self._cap // 4 // _BLOCK * _BLOCK
        kept = size - max(0, self._end - head)
        if not self._supported or kept <= self._cap:
            return
        end = (size - self._cap // 4) // _BLOCK * _BLOCK
        if end > read_to and kept > self._cap + max(self._cap, _SPARED_BYTES):
            pass_over(end)
        else:
            end = min(end, read_to // _BLOCK * _BLOCK)
        if end > max(head, self._end) and self._punch(head, end):
            self._end = end
            write_json(self._paths.output_gap, {"start": head, "end": end})

    def _known_end(self) -> int:
        try:
            return int(read_json(self._paths.output_gap)["end"])
        except FileNotFoundError:
            return 0

    def _punch(self, start: int, end: int) -> bool:
        libc = ctypes.CDLL(None, use_errno=True)
        fallocate = libc.fallocate64 if hasattr(libc, "fallocate64") else libc.fallocate
        fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        fd = os.open(self._paths.output, os.O_RDWR)
        try:
            if fallocate(fd, _FALLOC_PUNCH_KEEP_SIZE, start, end - start) == 0:
                return True
        finally:
            os.close(fd)
        if ctypes.get_errno() not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError(ctypes.get_errno(), "the output could not be capped", self._paths.output)
        self._supported = False  # this file system has no holes; the log stays whole
        return False
