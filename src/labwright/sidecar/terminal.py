"""The terminal of a `tty` run: its supervisor copies what it shows to the output file, and passes keys on."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import termios

from labwright.files import passing_refusals

_DRAINED_AT_ONCE = 64  # blocks: a job that writes without end must not keep us from ending it
_OWED_BYTES = 1 << 20
_ROWS_AND_COLUMNS = b"\x28\x00\x78\x00\x00\x00\x00\x00"  # 40 × 120 until a viewer sets a size


class Terminal:
    """`theirs` is the job's end. The code that starts the job closes it in this process."""

    def __init__(self, output: str) -> None:
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
            self._append(b"")  # readers of the output find a file even if the job prints nothing

    @property
    def input_path(self) -> str:
        """Bytes written to this path are typed into the terminal."""
        return f"/proc/{os.getpid()}/fd/{self._keys}"

    @property
    def sources(self) -> list[int]:
        """The descriptors to wait for."""
        if not self.is_open:
            return []
        return [self._ours] if self._typed else [self._ours, self._keys]

    def pump(self, ready: list[int]) -> None:
        if self.is_open and self._keys in ready:
            self._typed += os.read(self._keys, 4096)
        if self.is_open and self._typed:
            with contextlib.suppress(BlockingIOError):  # a job that reads nothing must not make us wait
                self._typed = self._typed[os.write(self._ours, self._typed) :]
        if self.is_open and self._ours in ready:
            self._copy_output()
        self.flush()

    def drain(self) -> None:
        """Copy what the terminal holds now: a job that blocks on a full terminal cannot handle SIGTERM."""
        for _ in range(_DRAINED_AT_ONCE):
            if not self.is_open or not select.select([self._ours], [], [], 0)[0]:
                return
            self._copy_output()

    def flush(self) -> bool:
        """Write output that the disk refused before, at most the newest megabyte. Return whether all is written."""
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
    """Make standard input the controlling terminal. Called in the job before its command."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def open_endless_pipe() -> int:
    """Open a pipe both ways, so that its reader never sees an end: input may come at any time."""
    reader, writer = os.pipe()
    try:
        return os.open(f"/proc/self/fd/{reader}", os.O_RDWR | os.O_CLOEXEC)
    finally:
        os.close(reader)
        os.close(writer)
