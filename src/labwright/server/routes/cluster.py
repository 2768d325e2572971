"""/cluster."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from labwright.server.auth import PERSON, PLANNERS, READERS, actor_of
from labwright.server.models.cluster import ClusterIn, ClusterOut, DetectIn, GpuHistoryOut
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.services import cluster

router = APIRouter(prefix="/cluster", route_class=StrictJsonRoute, tags=["cluster"])


@router.get("", dependencies=[READERS()])
def get_cluster(request: Request) -> ClusterOut:
    """What there is to run on, with GPU use as it is now."""
    return ClusterOut(**cluster.show(lab_of(request)))


@router.get("/history", dependencies=[READERS()])
def get_gpu_history(
    request: Request,
    hours: Annotated[float, Query(gt=0, le=12)] = 3,
    max_points: Annotated[int, Query(ge=10, le=3000)] = 300,
) -> GpuHistoryOut:
    """How busy and how full each GPU of this machine was over the last hours, and which run held it."""
    return GpuHistoryOut(**cluster.history(lab_of(request), hours, max_points))


@router.post("/detect", dependencies=[PLANNERS()])
def detect_cluster(request: Request, body: DetectIn | None = None) -> ClusterOut:
    """Look again."""
    preferred = body.preferred_type if body else None
    return ClusterOut(**cluster.detect(lab_of(request), preferred, actor_of(request)))


@router.post("", dependencies=[PERSON()])
def set_cluster(body: ClusterIn, request: Request) -> ClusterOut:
    """Set by hand; wins over detection until the next detect."""
    shown = cluster.set_by_hand(lab_of(request), body.type, body.max_parallel, body.shared_machine, actor_of(request))
    return ClusterOut(**shown)
