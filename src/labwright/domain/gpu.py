"""A GPU as the driver and the leases show it; when one is free, who may take it, and how to say why not."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# They sit on a card without computing on it; what memory they hold still counts against the limit.
HOUSEKEEPING = frozenset({"Xorg", "Xwayland", "gnome-shell", "nvidia-cuda-mps-server"})

# How frameworks and drivers put it, whatever the case of the letters.
OUT_OF_MEMORY = (
    r"CUDA out of memory|CUDA error: out of memory|torch(?:\.cuda)?\.OutOfMemoryError"
    r"|RESOURCE_EXHAUSTED: .{0,200}?(?:out of memory|allocat)|OOM when allocating tensor(?!.{0,300}device:CPU)"
    r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED"
    r"|cudaMalloc.{0,80}out of memory"
)
DEVICE_BUSY = (
    r"CUDA-capable device\(?s?\)? (?:is/)?are busy or unavailable|cudaErrorDevicesUnavailable"
    r"|CUDA_ERROR_DEVICE_UNAVAILABLE|CUDA_ERROR_DEVICE_ALREADY_IN_USE|cudaErrorDeviceAlreadyInUse"
    r"|exclusive-thread device already in use"
)
GPU_ERROR = (
    r"(?:uncorrectable ECC error|GPU is lost|GPU has fallen off the bus|no CUDA-capable device is detected"
    r"|CUDA_ERROR_(?:NO_DEVICE|ILLEGAL_ADDRESS|ECC_UNCORRECTABLE|LAUNCH_FAILED|NOT_INITIALIZED|UNKNOWN)"
    r"|CUDA driver version is insufficient|Driver/library version mismatch|device-side assert triggered"
    r"|CUDA error: [^\n]{1,120}|cudaError[A-Z]\w+|CUDNN_STATUS_(?:NOT_INITIALIZED|EXECUTION_FAILED))"
)
# In lower case: each phrase of a crowded card holds one of them, so that a long text is searched by them first.
CROWDING_WORDS = (
    "out of memory",
    "outofmemoryerror",
    "out_of_memory",
    "resource_exhausted",
    "oom when allocating",
    "memoryallocation",
    "alloc_failed",
    "busy or unavailable",
    "devicesunavailable",
    "device_unavailable",
    "already_in_use",
    "alreadyinuse",
    "already in use",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    pid: int
    memory_mb: int = 0
    user: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHolder:
    """Written by the holder into the lease file; another user's words, so never trusted beyond display."""

    run_id: str
    user: str
    pid: int = 0
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    index: int
    uuid: str
    name: str
    memory_total_mb: int
    memory_used_mb: int = 0
    utilization: int = 0
    processes: tuple[GpuProcess, ...] = ()
    lease: LeaseHolder | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "processes": [asdict(process) for process in self.processes]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Gpu:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["processes"] = tuple(GpuProcess(**process) for process in known.get("processes", ()))
        if known.get("lease"):
            known["lease"] = LeaseHolder(**known["lease"])
        return cls(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyLimits:
    """Up to here a card with no process on it still counts as free."""

    memory_mb: int = 1024
    utilization: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """Someone in the queue: how many cards, and which ones would do, the best first."""

    run_id: str
    user: str
    count: int
    usable: tuple[str, ...]
    since: float
    ageing_seconds: float


def tells_of_crowding(line: str) -> bool:
    """Whether a line of output says that a card had no memory or no time left."""
    return re.search(f"{OUT_OF_MEMORY}|{DEVICE_BUSY}", line, re.IGNORECASE) is not None


def foreign_on(gpu: Gpu, own_pids: Collection[int] = ()) -> tuple[GpuProcess, ...]:
    """Processes on a card that are neither ours nor mere housekeeping."""
    return tuple(p for p in gpu.processes if p.pid not in own_pids and p.name not in HOUSEKEEPING)


def is_free(gpu: Gpu, limits: BusyLimits, own_pids: Collection[int] = ()) -> bool:
    return not why_busy(gpu, limits, own_pids)


def why_busy(gpu: Gpu, limits: BusyLimits, own_pids: Collection[int] = ()) -> str:
    """What the driver shows against a card, in words; empty when it is free."""
    foreign = foreign_on(gpu, own_pids)
    if foreign:
        return f"GPU {gpu.index} is in use by {', '.join(_process_words(p) for p in foreign)}"
    if gpu.memory_used_mb > limits.memory_mb:
        # Processes of another container or user may be hidden: held memory alone is use.
        return f"GPU {gpu.index} has {_gigabytes(gpu.memory_used_mb)} of memory in use and shows no process"
    if gpu.utilization > limits.utilization:
        return f"GPU {gpu.index} is {gpu.utilization}% busy and shows no process"
    return ""


def lease_words(gpu: Gpu, holder: LeaseHolder) -> str:
    run = f" ({holder.run_id})" if holder.run_id else ""
    return f"GPU {gpu.index} is held by {holder.user or 'someone'}{run}"


def kept_words(gpu: Gpu, waiter: Waiter, now: float) -> str:
    cards = "1 GPU" if waiter.count == 1 else f"{waiter.count} GPUs"
    who = f"{waiter.run_id or 'a run'} of {waiter.user or 'someone'}"
    return f"GPU {gpu.index} is kept for {who}, waiting {max(0, now - waiter.since):.0f} s for {cards}"


def pick_gpus(free: Sequence[str], kept: Collection[str], count: int) -> tuple[str, ...]:
    """The first `count` free cards that nobody older comes first for; none at all when there are too few."""
    mine = tuple(uuid for uuid in free if uuid not in kept)
    return mine[:count] if len(mine) >= count else ()


def by_preference(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The emptiest first, then the lowest index."""
    return tuple(sorted(gpus, key=lambda gpu: (gpu.memory_used_mb, gpu.index)))


def kept_for_others(free: Sequence[str], ahead: Sequence[Waiter], now: float) -> dict[str, Waiter]:
    """Which free cards belong to someone older in the queue (`ahead`: oldest first).

    One whose request fits takes its cards next. One that does not fit yet is passed until it has aged; then
    every card that comes free is kept for it, unless leases ending would not be enough to serve it.
    """
    kept: dict[str, Waiter] = {}
    for waiter in ahead:
        fitting = [uuid for uuid in waiter.usable if uuid in free and uuid not in kept]
        aged = now - waiter.since >= waiter.ageing_seconds
        if len(fitting) >= waiter.count or (aged and len(waiter.usable) >= waiter.count):
            kept.update(dict.fromkeys(fitting[: waiter.count], waiter))
    return kept


def resolve_names(gpus: Sequence[Gpu], names: Sequence[str]) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    """Cards meant by indices, UUIDs or unique UUID beginnings, as CUDA reads them; and names that fit none."""
    found: dict[str, Gpu] = {}
    unknown: list[str] = []
    for name in (name.strip() for name in names):
        fits = [gpu for gpu in gpus if _is_named(gpu, name)]
        if len(fits) == 1:
            found[fits[0].uuid] = fits[0]
        else:
            unknown.append(name)
    return tuple(found.values()), tuple(unknown)


def _is_named(gpu: Gpu, name: str) -> bool:
    return name == str(gpu.index) or (len(name) > len("GPU-") and gpu.uuid.startswith(name))


def _process_words(process: GpuProcess) -> str:
    name = process.name or "an unseen process"
    who = f"{process.user}'s {name}" if process.user else name
    return f"{who} (pid {process.pid}, {_gigabytes(process.memory_mb)})"


def _gigabytes(megabytes: int) -> str:
    return f"{megabytes / 1024:.1f} GB"


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One card at one moment."""

    utilization: int
    memory_used_mb: int
    run_id: str  # who held it; empty where nobody did


@dataclass(frozen=True, slots=True)
class GpuMoment:
    """All cards at one moment."""

    at: float  # seconds since the epoch
    cards: Mapping[str, GpuReading]  # by UUID

    @classmethod
    def of(cls, gpus: Iterable[Gpu], at: float) -> GpuMoment:
        return cls(round(at, 3), {gpu.uuid: _reading(gpu) for gpu in gpus})

    def to_dict(self) -> dict[str, Any]:
        cards = {uuid: [one.utilization, one.memory_used_mb, one.run_id] for uuid, one in self.cards.items()}
        return {"at": self.at, "cards": cards}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GpuMoment:
        cards = {
            str(uuid): GpuReading(int(busy), int(memory), str(run))
            for uuid, (busy, memory, run) in data["cards"].items()
        }
        return cls(float(data["at"]), cards)


@dataclass(slots=True)
class GpuTrace:
    """One card over time, as lists of the same length: each entry stands for what happened in one span."""

    uuid: str
    times: list[float] = field(default_factory=list)  # of the last reading in the span
    utilization: list[float] = field(default_factory=list)  # mean
    memory_used_mb: list[int] = field(default_factory=list)  # greatest
    run_ids: list[str] = field(default_factory=list)  # of the last reading


def _reading(gpu: Gpu) -> GpuReading:
    return GpuReading(gpu.utilization, gpu.memory_used_mb, gpu.lease.run_id if gpu.lease else "")


def gpu_traces(moments: Sequence[GpuMoment], since: float, until: float, points: int) -> list[GpuTrace]:
    """At most `points` entries a card. A span in which nobody looked has none."""
    spans: dict[tuple[str, int], list[tuple[float, GpuReading]]] = {}  # by card and number of the span
    width = (until - since) / points
    for moment in moments:
        if since < moment.at <= until:
            span = min(points - 1, int((moment.at - since) / width))
            for uuid, reading in moment.cards.items():
                spans.setdefault((uuid, span), []).append((moment.at, reading))
    found: dict[str, GpuTrace] = {}
    for (uuid, _), seen in sorted(spans.items()):
        _add(found.setdefault(uuid, GpuTrace(uuid)), seen)
    return list(found.values())


def _add(trace: GpuTrace, seen: list[tuple[float, GpuReading]]) -> None:
    at, last = seen[-1]
    trace.times.append(at)
    trace.utilization.append(round(sum(reading.utilization for _, reading in seen) / len(seen), 1))
    trace.memory_used_mb.append(max(reading.memory_used_mb for _, reading in seen))
    trace.run_ids.append(last.run_id)
