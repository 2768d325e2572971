"""/cluster: machines, partitions and GPUs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from labwright.domain.cluster import ClusterSource, ClusterStatus, ClusterType, GpuwrapAdvice
from labwright.server.auth import PERSON, PLANNERS, READERS, actor_of
from labwright.server.models.fields import In
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.services import cluster

router = APIRouter(prefix="/cluster", route_class=StrictJsonRoute, tags=["cluster"])


class DetectIn(In):
    preferred_type: ClusterType | None = None


class ClusterIn(In):
    type: ClusterType
    max_parallel: int | None = Field(
        None, ge=1, le=100_000, description="max parallel runs; overrides the setting of that name"
    )
    shared_machine: bool | None = None


class RecommendedOut(BaseModel):
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


class ClusterNodeOut(BaseModel):
    name: str
    state: str = Field(description="as Slurm reports it")
    is_well: bool
    reason: str = Field(description="why Slurm took the node out of service")
    partitions: list[str]
    cpus: int
    cpus_allocated: int
    memory_mb: int
    gpus: int
    gpus_allocated: int | None = Field(description="null if this Slurm does not report it")


class ClusterStateOut(BaseModel):
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
    nodes: list[ClusterNodeOut]
    shared_machine: bool
    parallel_by_hand: int | None = Field(description="configured max parallel runs, or null")
    recommended: RecommendedOut
    evidence: list[EvidenceOut]
    last_detected_at: str


class ClusterOut(BaseModel):
    cluster: ClusterStateOut
    run_summary: dict[str, int]


class GpuTraceOut(BaseModel):
    uuid: str
    times: list[float] = Field(description="seconds since 1970; there is no entry for times without a sample")
    utilization: list[float] = Field(description="percent, mean since the previous entry")
    memory_used_mb: list[int] = Field(description="maximum since the previous entry")
    run_ids: list[str] = Field(description="the run that held the GPU, or empty")


class GpuHistoryOut(BaseModel):
    hours: float
    every_seconds: float = Field(description="sampling interval")
    gpus: list[GpuTraceOut]


@router.get("", dependencies=[READERS()])
def get_cluster(request: Request) -> ClusterOut:
    """Return the cluster with its current GPU use."""
    return ClusterOut(**cluster.show(lab_of(request)))


@router.get("/history", dependencies=[READERS()])
def get_gpu_history(
    request: Request,
    hours: Annotated[float, Query(gt=0, le=12)] = 3,
    max_points: Annotated[int, Query(ge=10, le=3000)] = 300,
) -> GpuHistoryOut:
    """Return utilization and memory use of each local GPU over the last hours, and the runs that held it."""
    return GpuHistoryOut(**cluster.history(lab_of(request), hours, max_points))


@router.post("/detect", dependencies=[PLANNERS()])
def detect_cluster(request: Request, body: DetectIn | None = None) -> ClusterOut:
    """Detect the cluster again."""
    preferred = body.preferred_type if body else None
    return ClusterOut(**cluster.detect(lab_of(request), preferred, actor_of(request)))


@router.post("", dependencies=[PERSON()])
def set_cluster(body: ClusterIn, request: Request) -> ClusterOut:
    """Configure the cluster manually. This overrides detection until the next detect."""
    shown = cluster.set_by_hand(lab_of(request), body.type, body.max_parallel, body.shared_machine, actor_of(request))
    return ClusterOut(**shown)
