"""Run a child process until it ends, its time is up, or a check stops it; measure what its process tree uses."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from labwright.processes import children_of, descendants_of, send_signal, start_time, state_of
from labwright.sandbox.fences import SandboxLimits

TIME = "time"
_BLOCK = 1 << 16
_LOOK_SECONDS = 0.1
_LAST_SECONDS = 5.0  # for the kernel to stop and end processes
_STILL = ("T", "t", "Z", "X", None)  # stopped, dead, or gone


@dataclass(slots=True)
class Kept:
    """The first and the last part of an output; the part between is counted and dropped."""

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
    cut_short: str  # why it was stopped: `TIME`, or the reason of the check; empty if it ended by itself
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
    """Run a command. `enough` is called several times a second with the child's pid; a reason stops the child."""
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
    """Write the input, which fits into a pipe. A child that ended before it read it shows that by its exit code."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(given)
            process.stdin.close()


def _listen(process: subprocess.Popen[bytes], deadline: float, kept: Kept, enough: Callable[[int], str] | None) -> str:
    """Read until the child closes its output *and* ends. Return why it has to be stopped, or ""."""
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

    try:
        process.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the child's session, and its children: bubblewrap's child is the first process of a namespace, and early on
    it does not notice that its parent died."""
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
    """Stop the process, so that it starts no more children, and return them."""
    send_signal(process.pid, signal.SIGSTOP)
    _wait_until(lambda: state_of(process.pid) in _STILL)
    return children_of(process.pid)


def _wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LAST_SECONDS
    while not done() and time.monotonic() < deadline:
        time.sleep(0.005)


_TICKS = os.sysconf("SC_CLK_TCK")


def over_limit(pid: int, limits: SandboxLimits) -> str:
    """Return the limit that a process tree exceeds as a whole, or "".

    The kernel's limits count each process alone, and do not apply to root.
    """
    tree = {pid, *descendants_of(pid)}
    if len(tree) > limits.processes:
        return "processes"
    if sum(map(_cpu_seconds, tree)) > limits.cpu_seconds:
        return "processor time"
    return _over_memory(tree, limits)


def over_memory(pid: int, limits: SandboxLimits) -> str:
    """Check only memory, if the kernel limits the rest."""
    return _over_memory({pid, *descendants_of(pid)}, limits)


def _over_memory(tree: Collection[int], limits: SandboxLimits) -> str:
    """Check a cheap sum first, which counts shared pages several times; the exact one costs the kernel more."""
    most = limits.memory_mb << 20
    return "memory" if sum(map(_mapped_bytes, tree)) > most and sum(map(_share_of_bytes, tree)) > most else ""


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and of its ended children."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


def _mapped_bytes(pid: int) -> int:
    """Return the memory of a process, with shared memory but without mapped files, which the kernel can drop."""
    return sum(_bytes_of(f"/proc/{pid}/status", "RssAnon:", "RssShmem:"))


def _share_of_bytes(pid: int) -> int:
    """Return the same with each page divided among its users. Old kernels do not support that."""
    try:
        found = _bytes_of(f"/proc/{pid}/smaps_rollup", "Pss_Anon:", "Pss_Shmem:")
    except PermissionError:
        found = []
    return sum(found) if found else _mapped_bytes(pid)


def _bytes_of(path: str, *names: str) -> list[int]:
    try:
        with open(path) as file:
            return [int(line.split()[1]) << 10 for line in file if line.startswith(names)]
    except (FileNotFoundError, ProcessLookupError):
        return []


_PATIENCE_SECONDS = 10.0


def fault_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Try a bubblewrap command and return why it does not work here, or "". Namespaces are often forbidden."""
    try:
        tried = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False, env=environment
        )
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    except PermissionError as error:
        return f"{error.filename} may not be used here"
    except subprocess.TimeoutExpired:
        return f"bubblewrap does not answer within {_PATIENCE_SECONDS:g} s"
    return "" if tried.returncode == 0 else f"bubblewrap does not work here: {tried.stderr.strip()[:300]}"
