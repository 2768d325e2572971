"""The terminal of a `tty` run, as its supervisor holds it: what it shows goes to the output file, keys go in."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import termios

from labwright.files import passing_refusals

_DRAINED_AT_ONCE = 64  # blocks: what writes without end must not keep us from ending it
_OWED_BYTES = 1 << 20
_ROWS_AND_COLUMNS = b"\x28\x00\x78\x00\x00\x00\x00\x00"  # 40 × 120 until a viewer says


class Terminal:
    def __init__(self, output: str) -> None:
        """`theirs` is the job's end; whoever starts the job closes it here."""
        self._output = output
        self._owed = b""
        self._typed = b""  # keys that the job has no room for yet
        self._ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, _ROWS_AND_COLUMNS)
        self._keys = open_endless_pipe()
        os.set_blocking(self._keys, False)
        os.set_blocking(self._ours, False)
        self.is_open = True
        with passing_refusals():
            self._append(b"")  # whoever follows the output finds a file also while the job is silent

    @property
    def input_path(self) -> str:
        """What is written there is typed."""
        return f"/proc/{os.getpid()}/fd/{self._keys}"

    @property
    def sources(self) -> list[int]:
        """The descriptors that are worth waiting for."""
        if not self.is_open:
            return []
        return [self._ours] if self._typed else [self._ours, self._keys]

    def pump(self, ready: list[int]) -> None:
        if self.is_open and self._keys in ready:
            self._typed += os.read(self._keys, 4096)
        if self.is_open and self._typed:
            self._type()
        if self.is_open and self._ours in ready:
            self._copy_output()
        self.flush()

    def drain(self) -> None:
        """What is there: a job that blocks on a full terminal could not handle its TERM."""
        for _ in range(_DRAINED_AT_ONCE):
            if not self.is_open or not select.select([self._ours], [], [], 0)[0]:
                return
            self._copy_output()

    def flush(self) -> bool:
        """A disk that refuses delays what the terminal showed; of very much the newest part is kept.

        Answers whether all is written.
        """
        if self._owed:
            written = 0
            with passing_refusals():
                written = self._append(self._owed)
            self._owed = self._owed[written:][-_OWED_BYTES:]
        return not self._owed

    def _append(self, block: bytes) -> int:
        output = os.open(self._output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            return os.write(output, block)
        finally:
            os.close(output)

    def _type(self) -> None:
        """As much as the job has room for; one that reads nothing must not make us wait."""
        with contextlib.suppress(BlockingIOError):
            self._typed = self._typed[os.write(self._ours, self._typed) :]

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            os.close(self._ours)
            os.close(self._keys)

    def _copy_output(self) -> None:
        try:
            block = os.read(self._ours, 65536)
        except BlockingIOError:
            return
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
