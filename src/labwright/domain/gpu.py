"""GPUs: what the driver and the leases report, which GPUs are free, who may take them, and their use over time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# These processes use a GPU without computing on it. Their memory still counts against the limit.
HOUSEKEEPING = frozenset({"Xorg", "Xwayland", "gnome-shell", "nvidia-cuda-mps-server"})

# Messages of frameworks and drivers, matched without case.
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
# In lower case. Every message about a full or busy GPU contains one of these, so they are searched for first.
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
    """The content of a lease file. Another user may have written it, so it is only displayed, never trusted."""

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
    """A GPU without processes counts as free up to these limits."""

    memory_mb: int = 1024
    utilization: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """A request in the GPU queue: how many GPUs, and which are acceptable, the best first."""

    run_id: str
    user: str
    count: int
    usable: tuple[str, ...]
    since: float
    ageing_seconds: float


def tells_of_crowding(line: str) -> bool:
    """Return whether a line of output reports that a GPU was out of memory or busy."""
    return re.search(f"{OUT_OF_MEMORY}|{DEVICE_BUSY}", line, re.IGNORECASE) is not None


def foreign_on(gpu: Gpu, own_pids: Collection[int] = ()) -> tuple[GpuProcess, ...]:
    """Return the processes on a GPU that are neither ours nor housekeeping."""
    return tuple(p for p in gpu.processes if p.pid not in own_pids and p.name not in HOUSEKEEPING)


def is_free(gpu: Gpu, limits: BusyLimits, own_pids: Collection[int] = ()) -> bool:
    return not why_busy(gpu, limits, own_pids)


def why_busy(gpu: Gpu, limits: BusyLimits, own_pids: Collection[int] = ()) -> str:
    """Return why the driver's report counts the GPU as busy, or an empty text if it is free."""
    foreign = foreign_on(gpu, own_pids)
    if foreign:
        return f"GPU {gpu.index} is in use by {', '.join(_process_words(p) for p in foreign)}"
    if gpu.memory_used_mb > limits.memory_mb:
        # Processes of another container or user may be hidden, so used memory alone counts as use.
        return f"GPU {gpu.index} has {_gigabytes(gpu.memory_used_mb)} of memory in use but shows no process"
    if gpu.utilization > limits.utilization:
        return f"GPU {gpu.index} is {gpu.utilization}% busy but shows no process"
    return ""


def lease_words(gpu: Gpu, holder: LeaseHolder) -> str:
    run = f" ({holder.run_id})" if holder.run_id else ""
    return f"GPU {gpu.index} is held by {holder.user or 'someone'}{run}"


def kept_words(gpu: Gpu, waiter: Waiter, now: float) -> str:
    cards = "1 GPU" if waiter.count == 1 else f"{waiter.count} GPUs"
    who = f"{waiter.run_id or 'a run'} of {waiter.user or 'someone'}"
    return f"GPU {gpu.index} is kept for {who}, waiting {max(0, now - waiter.since):.0f} s for {cards}"


def pick_gpus(free: Sequence[str], kept: Collection[str], count: int) -> tuple[str, ...]:
    """Return the first `count` free GPUs that are not reserved for older requests, or nothing if there are too few."""
    mine = tuple(uuid for uuid in free if uuid not in kept)
    return mine[:count] if len(mine) >= count else ()


def by_preference(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Sort by used memory, then by index."""
    return tuple(sorted(gpus, key=lambda gpu: (gpu.memory_used_mb, gpu.index)))


def kept_for_others(free: Sequence[str], ahead: Sequence[Waiter], now: float) -> dict[str, Waiter]:
    """Return which free GPUs are reserved for older requests (`ahead`, oldest first).

    A request that fits takes its GPUs next. Younger requests may pass one that does not fit yet until it has aged.
    Then every free GPU is reserved for it, unless the usable GPUs could never be enough.
    """
    kept: dict[str, Waiter] = {}
    for waiter in ahead:
        fitting = [uuid for uuid in waiter.usable if uuid in free and uuid not in kept]
        aged = now - waiter.since >= waiter.ageing_seconds
        if len(fitting) >= waiter.count or (aged and len(waiter.usable) >= waiter.count):
            kept.update(dict.fromkeys(fitting[: waiter.count], waiter))
    return kept


def resolve_names(gpus: Sequence[Gpu], names: Sequence[str]) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    """Resolve indices, UUIDs or unique UUID prefixes as CUDA does. Return the GPUs and the names that match none."""
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
    name = process.name or "a hidden process"
    who = f"{process.user}'s {name}" if process.user else name
    return f"{who} (pid {process.pid}, {_gigabytes(process.memory_mb)})"


def _gigabytes(megabytes: int) -> str:
    return f"{megabytes / 1024:.1f} GB"


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU at one moment."""

    utilization: int
    memory_used_mb: int
    run_id: str  # the run that held it, or empty


@dataclass(frozen=True, slots=True)
class GpuMoment:
    """All GPUs at one moment."""

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
    """One GPU over time, as lists of equal length with one entry per time span."""

    uuid: str
    times: list[float] = field(default_factory=list)  # of the last reading in each span
    utilization: list[float] = field(default_factory=list)  # mean
    memory_used_mb: list[int] = field(default_factory=list)  # maximum
    run_ids: list[str] = field(default_factory=list)  # of the last reading


def _reading(gpu: Gpu) -> GpuReading:
    return GpuReading(gpu.utilization, gpu.memory_used_mb, gpu.lease.run_id if gpu.lease else "")


def gpu_traces(moments: Sequence[GpuMoment], since: float, until: float, points: int) -> list[GpuTrace]:
    """Return at most `points` entries per GPU. A span without readings has no entry."""
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
