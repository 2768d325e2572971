"""Run untrusted code: it sees only the folders it is given, writes into a scratch folder, and ends in time.

`containment()` says what this machine can contain; `run_contained()` runs a command. It uses bubblewrap if that works,
else only the kernel's limits, which contain far less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from labwright.sandbox.child import TIME, Kept, fault_of, over_memory, run_child
from labwright.sandbox.fences import SCRATCH, Fence, SandboxLimits, bubblewrap_command, limits_command

__all__ = ["SCRATCH", "Containment", "Fence", "SandboxLimits", "SandboxResult", "containment", "run_contained"]
_LIMITED = ("processor time", "memory", "number of processes", "size of files", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Containment:
    kind: str  # "bubblewrap" or "limits"
    contained: tuple[str, ...]
    not_contained: tuple[str, ...] = ()
    reason: str = ""  # why not more


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    exit_code: int  # 128 + n for signal n
    output: bytes  # the first part of both streams
    output_bytes: int
    timed_out: bool
    wall_seconds: float
    containment: Containment = field(repr=False)

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out


@cache
def containment() -> Containment:
    fault = fault_of(bubblewrap_command(["/bin/true"], Fence(), SandboxLimits()), {})
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


def run_contained(command: Sequence[str], fence: Fence, limits: SandboxLimits, given: bytes = b"") -> SandboxResult:
    """Run a command until it and everything it started has ended. `given`: a few bytes for its standard input."""
    how = containment()
    build = bubblewrap_command if how.kind == "bubblewrap" else limits_command
    kept = Kept(limits.output_bytes)
    ended = run_child(
        build(command, fence, limits),
        {**fence.environment, "HOME": SCRATCH if how.kind == "bubblewrap" else "/nonexistent"},
        "/" if how.kind == "bubblewrap" else fence.workdir,
        limits.wall_seconds,
        kept,
        given,
        enough=lambda pid: over_memory(pid, limits),
    )
    return SandboxResult(
        exit_code=ended.exit_code,
        output=bytes(kept.head),
        output_bytes=kept.size,
        timed_out=ended.cut_short == TIME,
        wall_seconds=ended.wall_seconds,
        containment=how,
    )
