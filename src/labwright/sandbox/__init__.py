"""Run code that nobody has vouched for: it sees what it is given, writes into a scratch folder, and ends in time.

`containment()` tells what this machine can hold back; `run_contained()` does it. By bubblewrap where that works, and by
the kernel's limits alone where it does not, which holds back far less and says so.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from labwright.sandbox.fences import SCRATCH, Fence, Limits, bubblewrap_command, limits_command

__all__ = ["SCRATCH", "Containment", "Fence", "Limits", "Outcome", "containment", "run_contained"]
_PROBE_SECONDS = 10.0
_OUTPUT_BLOCK = 1 << 16
_LIMITED = ("processor time", "memory", "number of processes", "size of files", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Containment:
    kind: str  # "bubblewrap" or "limits"
    contained: tuple[str, ...]
    not_contained: tuple[str, ...] = ()
    reason: str = ""  # why not more


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    exit_code: int  # 128 + n for signal n
    output: bytes  # what it said on both streams, the first part of it
    output_bytes: int
    timed_out: bool
    wall_seconds: float
    containment: Containment = field(repr=False)

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out


@cache
def containment() -> Containment:
    """Tried once, for real: namespaces are often there but forbidden."""
    fault = _try_bubblewrap()
    if not fault:
        return Containment(
            kind="bubblewrap",
            contained=("files outside of what it is given", "network", "other processes", "environment", *_LIMITED),
        )
    return Containment(
        kind="limits",
        contained=("environment", *_LIMITED),
        not_contained=("files that its user may read or write", "network", "other processes of its user"),
        reason=fault,
    )


def _try_bubblewrap() -> str:
    command = bubblewrap_command(["/bin/true"], Fence(), Limits())
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False, env={})
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    except subprocess.TimeoutExpired:
        return f"bubblewrap does not answer within {_PROBE_SECONDS:g} s"
    return "" if tried.returncode == 0 else f"bubblewrap does not work here: {tried.stderr.strip()[:300]}"


def run_contained(command: Sequence[str], fence: Fence, limits: Limits, given: bytes = b"") -> Outcome:
    """Answers when it and everything it started has ended. `given`, a few bytes, is what it reads on its input."""
    how = containment()
    build = bubblewrap_command if how.kind == "bubblewrap" else limits_command
    began = time.monotonic()
    process = subprocess.Popen(
        build(command, fence, limits),
        stdin=subprocess.PIPE if given else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**fence.environment, "HOME": SCRATCH if how.kind == "bubblewrap" else "/nonexistent"},
        cwd="/" if how.kind == "bubblewrap" else fence.workdir,
        start_new_session=True,
    )
    try:
        _give(process, given)
        output, size, timed_out = _listen(process, began + limits.wall_seconds, limits.output_bytes)
    finally:
        _end(process)
    code = process.returncode
    return Outcome(
        exit_code=128 - code if code < 0 else code,
        output=output,
        output_bytes=size,
        timed_out=timed_out,
        wall_seconds=time.monotonic() - began,
        containment=how,
    )


def _give(process: subprocess.Popen[bytes], given: bytes) -> None:
    """Fits into a pipe, so nobody waits. One that ended before it read says so by its exit."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(given)
            process.stdin.close()


def _listen(process: subprocess.Popen[bytes], deadline: float, keep: int) -> tuple[bytes, int, bool]:
    """Until it closes its output, or its time is up. What is said beyond `keep` is counted and dropped."""
    assert process.stdout is not None
    kept, size = bytearray(), 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                break
            block = os.read(process.stdout.fileno(), _OUTPUT_BLOCK)
            if not block:
                return bytes(kept), size, not _ended_by(process, deadline)
            size += len(block)
            kept += block[: keep - len(kept)]
    return bytes(kept), size, True


def _ended_by(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Closing its output is not ending."""
    try:
        process.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Its session goes; with bubblewrap, so does everything in its process namespace."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
