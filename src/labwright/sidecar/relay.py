"""The way of a job's output into the output file: through a pipe, moved by a process that does nothing else.

The job could write to the file itself, but `echo x > /dev/stderr` opens the file again and truncates it. A pipe is not
truncated. The relay outlives supervisor and monitor, and ends when the last writer has closed the pipe. A killed relay
is replaced: what is not in the file yet is still in the pipe. Several relays may run at once; a lock gives them turns.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import stat
import struct
import termios
import time
import traceback
from collections.abc import Callable, Iterator

from labwright.files import is_refusal, passing_refusals
from labwright.paths import RunPaths
from labwright.processes import processes_of_run
from labwright.sidecar.record import RunJournal
from labwright.sidecar.terminal import open_endless_pipe

NAME = "labwright-relay"  # process name; the kernel has no room for more
PATIENCE_SECONDS = 20.0  # for the rest of the pipe after the job has ended
_POLL_SECONDS = 0.02
_PAUSE_SECONDS = 0.5  # before a dead relay is replaced, so that a failing one does not use up a core
_END_SECONDS = 1.0
_PIPE_BYTES = 1 << 18
_LITTLE_BYTES = 4096
_GATHER_MILLISECONDS = 5  # after little output: many short lines become one wake-up
_REFUSED_SECONDS = 0.25
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)


class Relay:
    """The supervisor's side: the pipe, and the process that moves its content."""

    def __init__(self, output: str) -> None:
        self.theirs = open_endless_pipe()  # open both ways: a job never gets SIGPIPE
        with contextlib.suppress(PermissionError):  # a user with very many pipes gets small ones
            fcntl.fcntl(self.theirs, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self.pipe = os.fstat(self.theirs).st_ino
        self.pid: int | None = None
        self._output = output
        self._ours = _open_reading_end(self._path)
        self._due_at = 0.0

    @property
    def due_in(self) -> float | None:
        """Seconds until a relay must be started, or None while one runs."""
        return None if self.pid is not None else self._due_at - time.monotonic()

    def keep_running(self) -> None:
        """Start the relay process if there is none and one is due."""
        if self.pid is None and time.monotonic() >= self._due_at:
            self.pid = start_relay(self._path, self._output)

    def note_end(self, pid: int) -> bool:
        """Return whether a reaped process was the relay. If so, another one is due soon."""
        if pid != self.pid:
            return False
        self.pid = None
        self._due_at = time.monotonic() + _PAUSE_SECONDS
        return True

    def settle(self, sleep_and_reap: Callable[[float], None]) -> None:
        """Wait until all output is in the file. If the disk is full, give up after a while; the relay goes on."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._move_present() and time.monotonic() < deadline:
            sleep_and_reap(_POLL_SECONDS)
            self.keep_running()

    def dismiss(self, sleep_and_reap: Callable[[float], None]) -> None:
        """Close the pipe, which ends the relay, and wait briefly to reap it."""
        self.close()
        deadline = time.monotonic() + _END_SECONDS
        while self.pid is not None and time.monotonic() < deadline:
            sleep_and_reap(_POLL_SECONDS)

    def _move_present(self) -> bool:
        """Move what the pipe holds now. Return whether all of it is in the file."""
        with passing_refusals():
            output = _open_output(self._output)
            try:
                with contextlib.suppress(BlockingIOError), _turn(self._ours, fcntl.LOCK_NB):
                    while _waiting_bytes(self._ours):
                        _move(self._ours, output)
                    return True
            finally:
                os.close(output)
        return False

    def close(self) -> None:
        """Close our ends. The relay goes on until the job's ends are closed too."""
        os.close(self.theirs)
        os.close(self._ours)

    @property
    def _path(self) -> str:
        return f"/proc/self/fd/{self.theirs}"


class OrphanedOutput:
    """A relay for a job without a supervisor: the first relay may have been killed with it."""

    def __init__(self, paths: RunPaths, record: RunJournal) -> None:
        self._paths = paths
        self._record = record
        self._relay: int | None = None

    def keep_running(self) -> None:
        """Start a relay if there is none and a process of the job still holds the pipe."""
        if self._relay is not None and os.waitpid(self._relay, os.WNOHANG)[0]:
            self._relay = None
        if self._relay is not None:
            return
        started = [event for event in self._record.events() if event["event"] == "started"]
        pipe = started[-1].get("output_pipe") if started else None
        if pipe is not None and (path := find_pipe(self._record.run_id, pipe)):
            self._relay = start_relay(path, self._paths.output)

    def settle(self) -> None:
        """Wait for the relay after the job has ended. If the disk is full, give up after a while; it goes on."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._relay is not None and time.monotonic() < deadline and not os.waitpid(self._relay, os.WNOHANG)[0]:
            time.sleep(_POLL_SECONDS)


def start_relay(pipe: str, output: str) -> int:
    """Fork a relay and return its pid. `pipe` is a path below /proc, maybe of another process."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _become_relay(pipe, output)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here; its traceback must reach the log
        traceback.print_exc()
    finally:
        os._exit(status)


def find_pipe(run_id: str, pipe: int) -> str | None:
    """Return the path at which an orphaned job holds the pipe of its supervisor. It may have other pipes too."""
    for process in processes_of_run(run_id):
        for path in (f"/proc/{process}/fd/1", f"/proc/{process}/fd/2"):
            if pipe_at(path) == pipe:
                return path
    return None


def pipe_at(path: str) -> int | None:
    """Return the inode of the pipe at this path, or None if it is not a pipe."""
    try:
        found = os.stat(path)
    except OSError:  # the process ended or closed it
        return None
    return found.st_ino if stat.S_ISFIFO(found.st_mode) else None


def is_relay(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().rstrip("\n") == NAME
    except OSError:
        return False


def _become_relay(path: str, output_path: str) -> None:
    signal.set_wakeup_fd(-1)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    with open("/proc/self/comm", "w") as file:
        file.write(NAME)
    pipe, output = _open_reading_end(path), _open_output(output_path)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd not in (0, 1, 2, pipe, output):  # no lease, no terminal, no writing end of the pipe
            with contextlib.suppress(OSError):  # the descriptor of the listing itself
                os.close(fd)
    _move_until_closed(pipe, output)


def _move_until_closed(pipe: int, output: int) -> None:
    while True:
        select.select([pipe], [], [])
        try:
            with _turn(pipe):
                moved = _move(pipe, output)
        except BlockingIOError:  # another relay moved it
            continue
        except OSError as error:
            if not is_refusal(error):
                raise
            time.sleep(_REFUSED_SECONDS)  # the job waits too, once the pipe is full
            continue
        if moved == 0:
            return
        if moved < _LITTLE_BYTES:
            poll = select.poll()
            poll.register(pipe, 0)  # returns early only if the pipe is closed
            poll.poll(_GATHER_MILLISECONDS)


def _move(pipe: int, output: int) -> int:
    """Move bytes within the kernel, so that a kill loses nothing."""
    end = os.fstat(output).st_size
    try:
        return os.splice(pipe, output, _PIPE_BYTES, offset_dst=end, flags=os.SPLICE_F_NONBLOCK)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    block = os.read(pipe, _PIPE_BYTES)  # this file system cannot splice: all that is read must be written
    written = 0
    while written < len(block):
        written += os.pwrite(output, block[written:], end + written)
    return written


@contextlib.contextmanager
def _turn(pipe: int, how: int = 0) -> Iterator[None]:
    """Hold the lock on the pipe. Each process opened the pipe itself, so the lock is its own."""
    fcntl.flock(pipe, fcntl.LOCK_EX | how)
    try:
        yield
    finally:
        fcntl.flock(pipe, fcntl.LOCK_UN)


def _waiting_bytes(pipe: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0])


def _open_reading_end(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _open_output(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
