"""The machine or cluster that runs use, and the recommendations that follow from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from labwright.domain.gpu import Gpu


class ClusterType(StrEnum):
    LOCAL_GPU = "local_gpu"
    SLURM = "slurm"
    CPU_ONLY = "cpu_only"


class ClusterStatus(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    OFFLINE = "offline"


class ClusterSource(StrEnum):
    DETECTED = "detected"
    MANUAL = "manual"


class GpuwrapAdvice(StrEnum):
    ENABLED = "enabled"
    OPTIONAL = "optional"
    DISABLED = "disabled"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionDetail:
    """One source that detection checked, and its result."""

    looked_at: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A Slurm partition and its resources."""

    name: str
    default: bool
    state: str  # up, down, drain, inact
    time_limit_seconds: int | None  # None: no limit
    nodes: int
    nodes_unwell: int  # down, drained or silent
    cpus: int
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of a Slurm cluster."""

    name: str
    state: str  # Slurm's own state: idle, mixed, allocated, drained, down*, …
    is_well: bool
    reason: str  # why an administrator or Slurm took the node out
    partitions: tuple[str, ...]
    cpus: int
    cpus_allocated: int
    memory_mb: int
    gpus: int
    gpus_allocated: int | None = None  # None: this Slurm does not report it


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    type: ClusterType
    status: ClusterStatus = ClusterStatus.HEALTHY
    source: ClusterSource = ClusterSource.DETECTED
    gpus: tuple[Gpu, ...] = ()
    cpu_count: int = 1
    memory_total_mb: int = 0
    node_count: int = 1
    head_node: str = ""
    partitions: tuple[Partition, ...] = ()
    nodes: tuple[Node, ...] = ()
    shared_machine: bool = False
    gpuwrap: GpuwrapAdvice = GpuwrapAdvice.NOT_APPLICABLE
    max_parallel: int = 1  # recommended
    parallel_by_hand: int | None = None  # limit of parallel runs set by a person
    evidence: tuple[DetectionDetail, ...] = ()
    last_detected_at: str = ""
    gpu_count: int = field(default=0)

    def at_a_time(self, max_parallel: int) -> int:
        """Return the limit of parallel runs: set by hand, else the setting (without GPUs), else the recommendation."""
        setting = max_parallel if self.type is ClusterType.CPU_ONLY else 0
        return self.parallel_by_hand or setting or self.max_parallel

    def runs_at_work(self, gpus: int) -> int:
        """Estimate how many runs with this many GPUs each Slurm can run at the same time."""
        return max(1, self.parallel_by_hand or self.max_parallel // max(1, gpus))

    def to_dict(self, max_parallel: int) -> dict[str, Any]:
        """Return the JSON form. `max_parallel` is the setting of that name."""
        data = asdict(self)
        data["gpus"] = [gpu.to_dict() for gpu in self.gpus]
        data["recommended"] = {"gpuwrap": data.pop("gpuwrap"), "max_parallel": self.at_a_time(max_parallel)}
        del data["max_parallel"]
        data["evidence"] = [asdict(item) for item in self.evidence]
        data["partitions"] = [asdict(partition) for partition in self.partitions]
        data["nodes"] = [asdict(node) for node in self.nodes]
        return data


def advise_gpuwrap(kind: ClusterType, shared: bool) -> GpuwrapAdvice:
    if kind is ClusterType.SLURM:
        return GpuwrapAdvice.DISABLED
    if kind is ClusterType.CPU_ONLY:
        return GpuwrapAdvice.NOT_APPLICABLE
    return GpuwrapAdvice.ENABLED if shared else GpuwrapAdvice.OPTIONAL


def advise_parallel(kind: ClusterType, gpu_count: int, cpu_count: int) -> int:
    """Recommend one run per GPU, or half the cores without GPUs: training rarely uses only one core."""
    if gpu_count and kind is not ClusterType.CPU_ONLY:
        return gpu_count
    return max(1, cpu_count // 2)
