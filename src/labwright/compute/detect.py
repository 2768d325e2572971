"""What is there to run on, from evidence that is shown. Every look outside has a time-out."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import replace

from labwright.compute import machine
from labwright.domain.clock import now
from labwright.domain.cluster import (
    Cluster,
    ClusterStatus,
    ClusterType,
    Evidence,
    advise_gpuwrap,
    advise_parallel,
)
from labwright.domain.gpu import Gpu
from labwright.gpu.lease import holders
from labwright.gpu.probe import Detection, find_pynvml_dir, run_detector

DRIVER_TIMEOUT_SECONDS = 10.0


def detect(lease_dir: str, environ: Mapping[str, str] = os.environ) -> Cluster:
    found = run_detector(timeout=DRIVER_TIMEOUT_SECONDS, samples=1, pynvml_dir=find_pynvml_dir())
    gpus = with_leases(visible(found.gpus, environ), lease_dir)
    others = machine.other_people()
    cores = machine.usable_cores()
    kind = ClusterType.LOCAL_GPU if gpus else ClusterType.CPU_ONLY
    return Cluster(
        type=kind,
        status=ClusterStatus.DEGRADED if found.errors else ClusterStatus.HEALTHY,
        gpus=gpus,
        gpu_count=len(gpus),
        cpu_count=cores,
        memory_total_mb=machine.usable_memory_mb(),
        head_node=socket.gethostname(),
        shared_machine=bool(others),
        gpuwrap=advise_gpuwrap(kind, bool(others)),
        max_parallel=advise_parallel(kind, len(gpus), cores),
        evidence=tuple(_evidence(found, others, cores, environ)),
        last_detected_at=now(),
    )


def visible(gpus: tuple[Gpu, ...], environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Whoever started the server with CUDA_VISIBLE_DEVICES set means these cards and no others."""
    value = environ.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return gpus
    named = [name.strip() for name in value.split(",")]
    return tuple(gpu for gpu in gpus if str(gpu.index) in named or gpu.uuid in named)


def with_leases(gpus: tuple[Gpu, ...], lease_dir: str) -> tuple[Gpu, ...]:
    held = holders(lease_dir) if gpus else {}
    return tuple(replace(gpu, lease=held.get(gpu.uuid)) for gpu in gpus)


def _evidence(found: Detection, others: set[str], cores: int, environ: Mapping[str, str]) -> list[Evidence]:
    looks = [Evidence(looked_at="GPU driver (NVML, then nvidia-smi)", said=_driver_words(found))]
    if "CUDA_VISIBLE_DEVICES" in environ:
        looks.append(Evidence(looked_at="CUDA_VISIBLE_DEVICES of the server", said=environ["CUDA_VISIBLE_DEVICES"]))
    looks.append(Evidence(looked_at="cores usable here", said=str(cores)))
    words = ", ".join(sorted(others)) or "nobody else"
    looks.append(Evidence(looked_at="other users' logins and processes", said=words))
    return looks


def _driver_words(found: Detection) -> str:
    if found.errors:
        return "; ".join(found.errors)
    return f"{len(found.gpus)} GPU(s) by {found.source}" if found.gpus else "no GPU driver answers"
