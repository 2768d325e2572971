"""Machines, partitions and GPUs over HTTP."""

from __future__ import annotations

from pydantic import BaseModel, Field

from labwright.domain.cluster import ClusterSource, ClusterStatus, ClusterType, GpuwrapAdvice
from labwright.server.models.fields import In


class DetectIn(In):
    preferred_type: ClusterType | None = None


class ClusterIn(In):
    type: ClusterType
    max_parallel: int | None = Field(
        None, ge=1, le=100_000, description="at most so many runs at a time; goes before the setting of that name"
    )
    shared_machine: bool | None = None


class Recommended(BaseModel):
    gpuwrap: GpuwrapAdvice
    max_parallel: int


class GpuProcessOut(BaseModel):
    pid: int
    memory_mb: int
    user: str
    name: str


class LeaseOut(BaseModel):
    run_id: str
    user: str
    pid: int
    since: str


class GpuOut(BaseModel):
    index: int
    uuid: str
    name: str
    memory_total_mb: int
    memory_used_mb: int
    utilization: int
    processes: list[GpuProcessOut]
    lease: LeaseOut | None


class EvidenceOut(BaseModel):
    looked_at: str
    said: str


class PartitionOut(BaseModel):
    name: str
    default: bool
    state: str
    time_limit_seconds: int | None
    nodes: int
    nodes_unwell: int
    cpus: int
    gpus: int


class NodeOut(BaseModel):
    name: str
    state: str = Field(description="in Slurm's word")
    is_well: bool
    reason: str = Field(description="why it was taken out, as Slurm has it")
    partitions: list[str]
    cpus: int
    cpus_allocated: int
    memory_mb: int
    gpus: int
    gpus_allocated: int | None = Field(description="null: this Slurm does not tell")


class Cluster(BaseModel):
    type: ClusterType
    status: ClusterStatus
    source: ClusterSource
    gpu_count: int
    gpus: list[GpuOut]
    cpu_count: int
    memory_total_mb: int
    node_count: int
    head_node: str
    partitions: list[PartitionOut]
    nodes: list[NodeOut]
    shared_machine: bool
    parallel_by_hand: int | None = Field(description="at most so many runs at a time; null: nobody set a number")
    recommended: Recommended
    evidence: list[EvidenceOut]
    last_detected_at: str


class ClusterOut(BaseModel):
    cluster: Cluster
    run_summary: dict[str, int]


class GpuTraceOut(BaseModel):
    uuid: str
    times: list[float] = Field(description="seconds since the epoch; a time in which nobody looked has no entry")
    utilization: list[float] = Field(description="percent, mean since the entry before")
    memory_used_mb: list[int] = Field(description="greatest since the entry before")
    run_ids: list[str] = Field(description="which run held it; empty where none did")


class GpuHistoryOut(BaseModel):
    hours: float
    every_seconds: float = Field(description="how often the server looks")
    gpus: list[GpuTraceOut]
