"""A child that is listened to until it ends, its time is up, or somebody says that it is enough."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from labwright.processes import children_of, send_signal, start_time, state_of

TIME = "time"
_BLOCK = 1 << 16
_LOOK_SECONDS = 0.1
_LAST_SECONDS = 5.0  # in which the kernel stops and ends what it is told to
_STILL = ("T", "t", "Z", "X", None)  # stopped, dead, or gone


@dataclass(slots=True)
class Kept:
    """Of what is said the first part and the last; what lies between is counted and dropped."""

    most_head: int
    most_tail: int = 0
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    size: int = 0

    def take(self, block: bytes) -> None:
        self.size += len(block)
        room = self.most_head - len(self.head)
        self.head += block[:room]
        if self.most_tail:
            self.tail += block[room:]
            del self.tail[: -self.most_tail]

    @property
    def dropped(self) -> int:
        return self.size - len(self.head) - len(self.tail)


@dataclass(frozen=True, slots=True)
class Ended:
    exit_code: int  # 128 + n for signal n
    cut_short: str  # why it was ended before it ended itself: `TIME`, or the word of whoever watched
    wall_seconds: float


def run_child(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    wall_seconds: float,
    kept: Kept,
    given: bytes = b"",
    enough: Callable[[int], str] | None = None,
) -> Ended:
    """`enough` is asked several times a second, with the child's process id; any word ends the child."""
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if given else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        cwd=cwd,
        start_new_session=True,
    )
    try:
        _give(process, given)
        cut_short = _listen(process, began + wall_seconds, kept, enough)
    finally:
        _end(process)
    code = process.returncode
    return Ended(128 - code if code < 0 else code, cut_short, time.monotonic() - began)


def _give(process: subprocess.Popen[bytes], given: bytes) -> None:
    """Fits into a pipe, so nobody waits. One that ended before it read says so by its exit."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(given)
            process.stdin.close()


def _listen(process: subprocess.Popen[bytes], deadline: float, kept: Kept, enough: Callable[[int], str] | None) -> str:
    """Until it closes its output *and* ends, or is to be ended; says why in that case."""
    assert process.stdout is not None
    is_open = True
    looked = 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (now := time.monotonic()) < deadline:
            if enough and now - looked >= _LOOK_SECONDS:
                if word := enough(process.pid):
                    return word
                looked = now
            patience = min(deadline - now, _LOOK_SECONDS if enough else deadline)
            if not is_open:
                if _has_ended(process, patience):
                    return ""
            elif selector.select(patience):
                block = os.read(process.stdout.fileno(), _BLOCK)
                kept.take(block)
                is_open = bool(block)
    return TIME


def _has_ended(process: subprocess.Popen[bytes], patience: float) -> bool:
    """Closing its output is not ending."""
    try:
        process.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Its session goes. Bubblewrap's child is the first process of a namespace, gone when all others there are; killed
    in its first moments it would not notice that its parent died, so it is killed itself."""
    children = _frozen_children(process) if process.poll() is None else []
    for pid in children:
        send_signal(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _wait_until(lambda: not any(map(start_time, children)))
    if process.stdout is not None:
        process.stdout.close()


def _frozen_children(process: subprocess.Popen[bytes]) -> list[int]:
    """All of them: once it has stopped it makes no more."""
    send_signal(process.pid, signal.SIGSTOP)
    _wait_until(lambda: state_of(process.pid) in _STILL)
    return children_of(process.pid)


def _wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LAST_SECONDS
    while not done() and time.monotonic() < deadline:
        time.sleep(0.005)
