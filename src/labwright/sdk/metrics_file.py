"""This process's own file in the run folder. Each call is one `write`, so a returned call survives any kill.

While the folder cannot be written (a full or read-only disk), lines wait in a bounded buffer. When it is full, the
older half is dropped and counted. Nothing is fsynced, so a power cut may lose lines.
"""

from __future__ import annotations

import errno
import os
import time
from _thread import RLock  # importing `threading` would take a third of our import time

from labwright.sdk.lines import fact_line, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WAKE_SECONDS = 0.2
_RETRY_SECONDS = 1.0
_OWED_LIMIT = 8 << 20
_BLOCK = 1 << 20
_CLOSED = -1

_live: list[MetricsFile] = []
_retired: list[int] = []
_TAIL = 1 << 16
_HEADER = 1 << 16
_SAME_PROCESS_GROUP = ("attempt", "try", "host")
_POINT = b'{"s":'  # the start of every line of `lines.template`


class MetricsFile:
    """`fd` is the open file, or -1 while lines must go through `keep`."""

    def __init__(self, run_dir: str, header: dict[str, Any], run_id: str, wake: str) -> None:
        self.fd = _CLOSED
        self.wake_at = 0.0
        self.lock = RLock()  # a signal handler may log while its thread holds it
        self._folder = f"{run_dir}/metrics"
        self._header = header
        self._wake = wake
        self._wake_line = f"{run_id} metrics\n".encode()
        self._handle = _CLOSED
        self._reset()

    def _reset(self) -> None:
        self._torn = b""  # the rest of a half-written line; it must be written first
        self._owed: list[bytes] = []
        self._owed_size = 0
        self._dropped = 0
        self._retry_at = 0.0
        self._trouble = ""

    def write(self, line: bytes) -> None:
        """Write one or more whole lines. Never raise and never block."""
        try:
            written = os.write(self.fd, line)
        except OSError:
            written = 0
        if written != len(line):
            self.keep(line, written)
        now = time.time()
        if not 0.0 < self.wake_at - now <= WAKE_SECONDS:
            self.wake(now)

    def keep(self, line: bytes, written: int) -> None:
        """Buffer a line that could not be written: the file is not open yet, or the disk refuses."""
        with self.lock:
            self.fd = _CLOSED
            if written:
                self._torn = line[written:]
            else:
                self._owe(line)
            if time.monotonic() >= self._retry_at:
                self.flush()

    def _owe(self, line: bytes) -> None:
        self._owed.append(line)
        self._owed_size += len(line)
        if self._owed_size > _OWED_LIMIT:
            dropped = self._owed[: len(self._owed) // 2]
            del self._owed[: len(dropped)]
            self._owed_size -= sum(map(len, dropped))
            self._dropped += len(dropped)

    def flush(self) -> bool:
        """Write the buffer. Return False if that fails; it is retried later."""
        with self.lock:
            try:
                self._open()
                while self._torn or self._owed:
                    self._write_block()
                self._report_dropped()
            except OSError as error:
                self._note(error)
                return False
            self._trouble = ""
            self.fd = self._handle
            return True

    def _open(self) -> None:
        if self._handle != _CLOSED:
            return
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = f"{self._folder}/sdk-{os.getpid()}-{os.urandom(4).hex()}.jsonl"
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        self._dropped += bool(self._torn)  # its first half is in the closed file
        self._torn = fact_line({"source": "sdk", "pid": os.getpid(), **self._header})
        if self not in _live:
            _live.append(self)
        while _retired:
            _close(_retired.pop())

    def _write_block(self) -> None:
        lines = [self._torn]
        size = len(self._torn)
        for line in self._owed:
            size += len(line)
            lines.append(line)
            if size > _BLOCK:
                break
        written = os.write(self._handle, b"".join(lines))
        self._forget(written, len(lines) - 1)
        if written < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _forget(self, written: int, count: int) -> None:
        """Remove written bytes from the buffer, and keep the rest of a half-written line."""
        if written < len(self._torn):
            self._torn = self._torn[written:]
            return
        written -= len(self._torn)
        self._torn = b""
        done = 0
        for line in self._owed[:count]:
            if written <= 0:
                break
            self._torn = line[written:]
            written -= len(line)
            self._owed_size -= len(line)
            done += 1
        del self._owed[:done]

    def _report_dropped(self) -> None:
        if self._dropped:
            why = f"{self._dropped} log lines were dropped while the run folder could not be written: {self._trouble}"
            self._dropped = 0
            say(why)
            self._owe(fact_line({"t": round(time.time(), 3), "refused": {"key": "", "why": why}}))
            self._write_block()

    def _note(self, error: OSError) -> None:
        if error.errno == errno.EBADF:
            self._handle = _CLOSED  # something closed all files of the process: use a new one
        if not self._trouble:
            say(f"cannot write to {self._folder} ({error.strerror}); training goes on, metrics are buffered")
        self._trouble = error.strerror or str(error)
        self._retry_at = time.monotonic() + _RETRY_SECONDS

    def wake(self, now: float) -> None:
        """Wake the server. It also polls, so nothing depends on this."""
        self.wake_at = now + WAKE_SECONDS
        if not self._wake:
            return
        try:
            # Open both ways: this process is a reader too, so the write never raises SIGPIPE.
            fd = os.open(self._wake, os.O_RDWR | os.O_NONBLOCK)
            try:
                os.write(fd, self._wake_line)
            finally:
                os.close(fd)
        except OSError:
            pass

    def close(self) -> None:
        """Flush and retire the file. A later line opens a new one and closes this one: a thread may still write."""
        with self.lock:
            if (self._torn or self._owed) and not self.flush():
                say(f"{len(self._owed) + self._dropped} log lines could not be written to {self._folder}")
            if self._handle != _CLOSED:
                _retired.append(self._handle)
            self.fd = self._handle = _CLOSED
            self._reset()

    def reset_after_fork(self) -> None:
        """Start over in a forked child: the file and its buffer belong to the parent."""
        self.lock = RLock()
        if self._handle != _CLOSED:
            _close(self._handle)
        self.fd = self._handle = _CLOSED
        self._reset()


def _close(handle: int) -> None:
    try:
        os.close(handle)
    except OSError:
        pass  # the script may have closed all descriptors


def _after_fork() -> None:
    for file in _live:
        file.reset_after_fork()


os.register_at_fork(after_in_child=_after_fork)


def next_step(run_dir: str, header: dict[str, Any]) -> int:
    """Return the first step for a process that logs without steps: after the processes before it, or 0.

    Processes that still log do not count: parallel ranks and workers all start at 0. Processes of another try do not
    count, since the whole command runs again. Nor do those on other hosts, which may still log.
    """
    try:
        names = os.listdir(f"{run_dir}/metrics")
    except OSError:  # nothing is logged yet
        return 0
    return max((_step_after(f"{run_dir}/metrics/{name}", header) for name in names), default=0)


def _step_after(path: str, header: dict[str, Any]) -> int:
    try:
        name = os.path.basename(path)
        return 0 if not name.startswith("sdk-") or _is_alive(int(name.split("-")[1])) else _next_step_in(path, header)
    except (OSError, ValueError, AttributeError):  # cut off by a kill, or not a file of the SDK
        return 0


def _is_alive(pid: int) -> bool:
    """Return whether another process with this pid exists."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # a process of another user exists
    return True


def _next_step_in(path: str, header: dict[str, Any]) -> int:
    import json  # here: it takes half as long to import as all of the SDK

    with open(path, "rb") as file:
        theirs = json.loads(file.readline(_HEADER))
        if any(theirs.get(name) != header[name] for name in _SAME_PROCESS_GROUP):
            return 0
        file.seek(max(file.tell(), os.fstat(file.fileno()).st_size - _TAIL))
        points = [line for line in file.read().split(b"\n")[:-1] if line.startswith(_POINT)]
    return max((int(line[len(_POINT) : line.index(b",")]) + 1 for line in points), default=0)
