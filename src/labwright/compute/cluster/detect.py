"""Detect what runs can use, with evidence for the user. Every external query has a timeout."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace

from labwright.compute.cluster import machine
from labwright.compute.slurm.probe import SlurmProbe, probe_slurm
from labwright.domain.clock import now
from labwright.domain.cluster import (
    Cluster,
    ClusterStatus,
    ClusterType,
    DetectionDetail,
    advise_gpuwrap,
    advise_parallel,
)
from labwright.domain.gpu import Gpu
from labwright.gpu.lease import holders
from labwright.gpu.probe import Detection, find_pynvml_dir, run_detector

DRIVER_TIMEOUT_SECONDS = 10.0
_ALLOCATION = "SLURM_JOB_ID"  # set inside a Slurm allocation
_NAMED_NODES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionResult:
    """What was detected, before the type of cluster is decided."""

    driver: Detection
    slurm: SlurmProbe
    gpus: tuple[Gpu, ...]
    other_users: frozenset[str]
    cores: int
    memory_mb: int


def detect(lease_dir: str, environ: Mapping[str, str] = os.environ, *, slurm_expected: bool = False) -> Cluster:
    """Detect the cluster. `slurm_expected`: Slurm answered here before, so no answer means that it is down."""
    findings = inspect(lease_dir, environ)
    # Slurm may manage this machine's own GPUs, so it comes first. Inside an allocation, runs stay in it.
    has_slurm = findings.slurm.answers or findings.slurm.is_configured or slurm_expected
    if has_slurm and _ALLOCATION not in environ:
        kind = ClusterType.SLURM
    else:
        kind = ClusterType.LOCAL_GPU if findings.gpus else ClusterType.CPU_ONLY
    return describe(kind, findings, environ)


def inspect(lease_dir: str, environ: Mapping[str, str] = os.environ) -> DetectionResult:
    driver = _query_driver()
    return DetectionResult(
        driver=driver,
        slurm=probe_slurm(environ),
        gpus=with_leases(visible(driver.gpus, environ), lease_dir),
        other_users=frozenset(machine.other_users()),
        cores=machine.usable_cores(),
        memory_mb=machine.usable_memory_mb(),
    )


def query_gpus(lease_dir: str, environ: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    return with_leases(visible(_query_driver().gpus, environ), lease_dir)


def _query_driver() -> Detection:
    return run_detector(timeout=DRIVER_TIMEOUT_SECONDS, samples=1, pynvml_dir=find_pynvml_dir())


def describe(kind: ClusterType, findings: DetectionResult, environ: Mapping[str, str] = os.environ) -> Cluster:
    """Describe the machine, or the cluster around it, as one of the three types."""
    on_slurm, slurm = kind is ClusterType.SLURM, findings.slurm
    gpus = findings.gpus if kind is ClusterType.LOCAL_GPU else ()
    gpu_count = slurm.gpu_count if on_slurm else len(gpus)
    cores = (slurm.cpu_count or findings.cores) if on_slurm else findings.cores
    well = slurm.well  # nodes that are down are counted, but start nothing
    usable = (well.gpu_count, well.cpu_count) if on_slurm else (gpu_count, cores)
    status = ClusterStatus.HEALTHY
    if on_slurm and not slurm.answers:
        status = ClusterStatus.OFFLINE
    elif findings.driver.errors or (on_slurm and slurm.unwell):
        status = ClusterStatus.DEGRADED
    return Cluster(
        type=kind,
        status=status,
        gpus=gpus,
        gpu_count=gpu_count,
        cpu_count=cores,
        memory_total_mb=(slurm.memory_mb or findings.memory_mb) if on_slurm else findings.memory_mb,
        node_count=max(1, len(slurm.nodes)) if on_slurm else 1,
        head_node=socket.gethostname(),
        partitions=slurm.partitions if on_slurm else (),
        nodes=slurm.machines if on_slurm else (),
        shared_machine=bool(findings.other_users),
        gpuwrap=advise_gpuwrap(kind, bool(findings.other_users)),
        max_parallel=advise_parallel(kind, *usable),
        evidence=tuple(_evidence(findings, environ)),
        last_detected_at=now(),
    )


def visible(gpus: tuple[Gpu, ...], environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return only the GPUs in CUDA_VISIBLE_DEVICES, if the server was started with it."""
    value = environ.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return gpus
    named = [name.strip() for name in value.split(",")]
    return tuple(gpu for gpu in gpus if str(gpu.index) in named or gpu.uuid in named)


def with_leases(gpus: tuple[Gpu, ...], lease_dir: str) -> tuple[Gpu, ...]:
    held = holders(lease_dir) if gpus else {}
    return tuple(replace(gpu, lease=held.get(gpu.uuid)) for gpu in gpus)


def _evidence(findings: DetectionResult, environ: Mapping[str, str]) -> list[DetectionDetail]:
    driver, slurm = findings.driver, findings.slurm
    driver_answer = f"{len(driver.gpus)} GPU(s) by {driver.source}" if driver.gpus else "no GPU driver answers"
    details = [("GPU driver (NVML, then nvidia-smi)", "; ".join(driver.errors) or driver_answer)]
    if "CUDA_VISIBLE_DEVICES" in environ:
        details.append(("CUDA_VISIBLE_DEVICES of the server", environ["CUDA_VISIBLE_DEVICES"]))
    details.append(("Slurm (sinfo)", slurm.said))
    variables = [name for name in ("SLURM_CONF", _ALLOCATION) if name in environ]
    details += [(f"{name} of the server", environ[name]) for name in variables]
    if slurm.unwell:
        details.append(("Slurm nodes that are not well", ", ".join(slurm.unwell[:_NAMED_NODES])))
    details.append(("cores usable here", str(findings.cores)))
    details.append(("other users' logins and processes", ", ".join(sorted(findings.other_users)) or "nobody else"))
    return [DetectionDetail(looked_at=source, said=result) for source, result in details]
