"""The terminal of a `tty` run, as its supervisor holds it: what it shows goes to the output file, keys go in."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import termios

_OWED_BYTES = 1 << 20
_ROWS_AND_COLUMNS = b"\x28\x00\x78\x00\x00\x00\x00\x00"  # 40 × 120 until a viewer says


class Terminal:
    def __init__(self, output: str) -> None:
        """`theirs` is the job's end; whoever starts the job closes it here."""
        self._output = output
        self._owed = b""
        self._ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, _ROWS_AND_COLUMNS)
        self._keys = open_endless_pipe()
        os.set_blocking(self._keys, False)
        self.is_open = True

    @property
    def input_path(self) -> str:
        """What is written there is typed."""
        return f"/proc/{os.getpid()}/fd/{self._keys}"

    @property
    def sources(self) -> list[int]:
        """The descriptors that are worth waiting for."""
        return [self._ours, self._keys] if self.is_open else []

    def pump(self, ready: list[int]) -> None:
        if self.is_open and self._keys in ready:
            os.write(self._ours, os.read(self._keys, 4096))
        if self.is_open and self._ours in ready:
            self._copy_output()
        self.flush()

    def drain(self) -> None:
        """All that is there: a job that blocks on a full terminal could not handle its TERM."""
        while self.is_open and select.select([self._ours], [], [], 0)[0]:
            self._copy_output()

    def flush(self) -> None:
        """A full disk delays what the terminal showed; of very much the newest part is kept."""
        if self._owed:
            try:
                with open(self._output, "ab", buffering=0) as output:
                    written = output.write(self._owed) or 0
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                written = 0
            self._owed = self._owed[written:][-_OWED_BYTES:]

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            os.close(self._ours)
            os.close(self._keys)

    def _copy_output(self) -> None:
        try:
            block = os.read(self._ours, 65536)
        except OSError:  # the last process closed its end
            block = b""
        if not block:
            self.close()
        self._owed += block
        self.flush()


def take_terminal() -> None:
    """In the job, before its command: standard input becomes the terminal that it is controlled by."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def open_endless_pipe() -> int:
    """Open both ways, so that it is never at its end: keys may come at any time."""
    reader, writer = os.pipe()
    try:
        return os.open(f"/proc/self/fd/{reader}", os.O_RDWR | os.O_CLOEXEC)
    finally:
        os.close(reader)
        os.close(writer)
