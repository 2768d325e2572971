"""Run code that nobody has vouched for: it sees what it is given, writes into a scratch folder, and ends in time.

`containment()` tells what this machine can hold back; `run_contained()` does it. By bubblewrap where that works, and by
the kernel's limits alone where it does not, which holds back far less and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from labwright.sandbox.child import TIME, Kept, run_child
from labwright.sandbox.fences import SCRATCH, Fence, Limits, bubblewrap_command, limits_command
from labwright.sandbox.trial import fault_of
from labwright.sandbox.watch import over_memory

__all__ = ["SCRATCH", "Containment", "Fence", "Limits", "Outcome", "containment", "run_contained"]
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
    fault = fault_of(bubblewrap_command(["/bin/true"], Fence(), Limits()), {})
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


def run_contained(command: Sequence[str], fence: Fence, limits: Limits, given: bytes = b"") -> Outcome:
    """Answers when it and everything it started has ended. `given`, a few bytes, is what it reads on its input."""
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
    return Outcome(
        exit_code=ended.exit_code,
        output=bytes(kept.head),
        output_bytes=kept.size,
        timed_out=ended.cut_short == TIME,
        wall_seconds=ended.wall_seconds,
        containment=how,
    )
