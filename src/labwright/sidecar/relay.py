"""What a job prints, on its way into the output file: through a pipe, carried by a process that does nothing else.

The job could write to the file itself; but `echo x > /dev/stderr` opens anew whatever stands there, and that empties
a file. A pipe it does not. The relay outlives supervisor and monitor, and ends once the last writer is gone. One that
is killed is replaced: what is not in the file yet is still in the pipe. Several may carry at once, each in its turn.
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

NAME = "labwright-relay"  # as the kernel shows it; it has no room for more
PATIENCE_SECONDS = 20.0  # with what is still in the pipe when the job has ended
_MOMENT_SECONDS = 0.02
_PAUSE_SECONDS = 0.5  # before a dead one is replaced, so that one that cannot live does not burn a core
_END_SECONDS = 1.0
_PIPE_BYTES = 1 << 18
_LITTLE_BYTES = 4096
_GATHER_MILLISECONDS = 5  # after a little: many short lines are one wake-up, not one each
_REFUSED_SECONDS = 0.25
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)


class Relay:
    """A supervisor's hold on the pipe and on who carries."""

    def __init__(self, output: str) -> None:
        self.theirs = open_endless_pipe()  # both ends: a job never dies for want of a reader
        with contextlib.suppress(PermissionError):  # a user with very many pipes gets small ones
            fcntl.fcntl(self.theirs, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self.pipe = os.fstat(self.theirs).st_ino
        self.pid: int | None = None
        self._output = output
        self._ours = _open_reading_end(self._path)
        self._due_at = 0.0

    @property
    def due_in(self) -> float | None:
        """Seconds; nothing while somebody carries."""
        return None if self.pid is not None else self._due_at - time.monotonic()

    def tend(self) -> None:
        if self.pid is None and time.monotonic() >= self._due_at:
            self.pid = start_relay(self._path, self._output)

    def saw_end(self, pid: int) -> bool:
        """Whether a process that was reaped is the one that carried; then another one is due soon."""
        if pid != self.pid:
            return False
        self.pid = None
        self._due_at = time.monotonic() + _PAUSE_SECONDS
        return True

    def settle(self, rest: Callable[[float], None]) -> None:
        """All that was printed is in the file before anybody judges by it; on a full disk the relay goes on alone.

        `rest` sleeps so long and reaps whatever ended.
        """
        patience = time.monotonic() + PATIENCE_SECONDS
        while not self._carry() and time.monotonic() < patience:
            rest(_MOMENT_SECONDS)
            self.tend()

    def dismiss(self, rest: Callable[[float], None]) -> None:
        """It ends by itself; we wait a little only to leave no child behind."""
        self.close()
        patience = time.monotonic() + _END_SECONDS
        while self.pid is not None and time.monotonic() < patience:
            rest(_MOMENT_SECONDS)

    def _carry(self) -> bool:
        """Help with what is there now; answers whether all of it is in the file."""
        with passing_refusals():
            output = _open_output(self._output)
            try:
                return _carry_present(self._ours, output)
            finally:
                os.close(output)
        return False

    def close(self) -> None:
        """The relay goes on until the job's own ends are closed too."""
        os.close(self.theirs)
        os.close(self._ours)

    @property
    def _path(self) -> str:
        return f"/proc/self/fd/{self.theirs}"


class OrphanedOutput:
    """Carried by a relay of ours too: the first one may have been killed with its supervisor."""

    def __init__(self, paths: RunPaths, record: RunJournal) -> None:
        self._paths = paths
        self._record = record
        self._relay: int | None = None

    def tend(self) -> None:
        if self._relay is not None and os.waitpid(self._relay, os.WNOHANG)[0]:
            self._relay = None
        pipe = self._pipe() if self._relay is None else None
        if pipe is not None and (path := find_pipe(self._record.run_id, pipe)):
            self._relay = start_relay(path, self._paths.output)

    def settle(self) -> None:
        """The job is gone. The relay ends with the last writer; one that waits for room on the disk goes on alone."""
        patience = time.monotonic() + PATIENCE_SECONDS
        while self._relay is not None and time.monotonic() < patience and not os.waitpid(self._relay, os.WNOHANG)[0]:
            time.sleep(_MOMENT_SECONDS)

    def _pipe(self) -> int | None:
        started = [event for event in self._record.events() if event["event"] == "started"]
        return started[-1].get("output_pipe") if started else None


def start_relay(pipe: str, output: str) -> int:
    """`pipe` may be another process's descriptor, as the kernel shows it."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _become_relay(pipe, output)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here; its last words must reach the log
        traceback.print_exc()
    finally:
        os._exit(status)


def find_pipe(run_id: str, pipe: int) -> str | None:
    """Where an orphaned job still holds the pipe that its supervisor made; it may have pipes of its own too."""
    for process in processes_of_run(run_id):
        for path in (f"/proc/{process}/fd/1", f"/proc/{process}/fd/2"):
            if pipe_at(path) == pipe:
                return path
    return None


def pipe_at(path: str) -> int | None:
    try:
        found = os.stat(path)
    except OSError:  # its process ended, or closed it
        return None
    return found.st_ino if stat.S_ISFIFO(found.st_mode) else None


def is_relay(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().rstrip("\n") == NAME
    except OSError:
        return False


def _become_relay(path: str, output: str) -> None:
    signal.set_wakeup_fd(-1)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    with open("/proc/self/comm", "w") as file:
        file.write(NAME)
    pipe, file_of_output = _open_reading_end(path), _open_output(output)
    _close_all_but(0, 1, 2, pipe, file_of_output)  # no lease, no terminal, no writing end of the pipe
    _carry_all(pipe, file_of_output)


def _carry_all(pipe: int, output: int) -> None:
    """Until the last writer has closed the pipe."""
    while True:
        select.select([pipe], [], [])
        try:
            with _turn(pipe):
                moved = _move(pipe, output)
        except BlockingIOError:  # somebody else carried it
            continue
        except OSError as error:
            if not is_refusal(error):
                raise
            time.sleep(_REFUSED_SECONDS)  # the job waits for room, as soon as the pipe is full too
            continue
        if moved == 0:
            return
        if moved < _LITTLE_BYTES:
            _wait_for_close(pipe)


def _carry_present(pipe: int, output: int) -> bool:
    with contextlib.suppress(BlockingIOError), _turn(pipe, fcntl.LOCK_NB):
        while _waiting_bytes(pipe):
            _move(pipe, output)
        return True
    return False


def _move(pipe: int, output: int) -> int:
    """By the kernel, which lets nothing go that is not written: a kill in between loses nothing."""
    end = os.fstat(output).st_size
    try:
        return os.splice(pipe, output, _PIPE_BYTES, offset_dst=end, flags=os.SPLICE_F_NONBLOCK)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    block = os.read(pipe, _PIPE_BYTES)  # a file system that cannot: what is read must be written
    written = 0
    while written < len(block):
        written += os.pwrite(output, block[written:], end + written)
    return written


@contextlib.contextmanager
def _turn(pipe: int, how: int = 0) -> Iterator[None]:
    """Each carrier opened the pipe for itself, so that its lock is its own."""
    fcntl.flock(pipe, fcntl.LOCK_EX | how)
    try:
        yield
    finally:
        fcntl.flock(pipe, fcntl.LOCK_UN)


def _wait_for_close(pipe: int) -> None:
    poll = select.poll()
    poll.register(pipe, 0)  # closed is always told
    poll.poll(_GATHER_MILLISECONDS)


def _waiting_bytes(pipe: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0])


def _open_reading_end(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _open_output(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _close_all_but(*kept: int) -> None:
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd not in kept:
            with contextlib.suppress(OSError):  # the one by which we looked
                os.close(fd)
