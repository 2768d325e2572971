"""What there is to run on, and what that advises."""

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
    """One thing that was looked at, and what it said."""

    looked_at: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A queue of Slurm and what stands behind it."""

    name: str
    default: bool
    state: str  # up, down, drain, inact
    time_limit_seconds: int | None  # none: no limit
    nodes: int
    nodes_unwell: int  # down, drained or silent
    cpus: int
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine of Slurm's."""

    name: str
    state: str  # in Slurm's word: idle, mixed, allocated, drained, down*, …
    is_well: bool
    reason: str  # why an administrator, or Slurm itself, took it out
    partitions: tuple[str, ...]
    cpus: int
    cpus_allocated: int
    memory_mb: int
    gpus: int
    gpus_allocated: int | None = None  # none: this Slurm does not tell


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
    max_parallel: int = 1  # as advised
    parallel_by_hand: int | None = None  # at most so many runs at a time, of whatever kind: a person said so
    evidence: tuple[DetectionDetail, ...] = ()
    last_detected_at: str = ""
    gpu_count: int = field(default=0)

    def at_a_time(self, max_parallel: int) -> int:
        """So many runs: as set by hand; else, where there are no cards, as the setting has it; else as advised."""
        setting = max_parallel if self.type is ClusterType.CPU_ONLY else 0
        return self.parallel_by_hand or setting or self.max_parallel

    def runs_at_work(self, gpus: int) -> int:
        """Of Slurm, which takes any number: how many that take so many cards each are likely to run side by side."""
        return max(1, self.parallel_by_hand or self.max_parallel // max(1, gpus))

    def to_dict(self, max_parallel: int) -> dict[str, Any]:
        """`max_parallel` is the setting of that name."""
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
    """One run a GPU; on CPUs half the cores, since a training process rarely keeps to one."""
    if gpu_count and kind is not ClusterType.CPU_ONLY:
        return gpu_count
    return max(1, cpu_count // 2)
