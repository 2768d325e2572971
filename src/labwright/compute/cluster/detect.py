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
class Looks:
    """All findings, before the type of cluster is decided."""

    driver: Detection
    slurm: SlurmProbe
    gpus: tuple[Gpu, ...]
    others: frozenset[str]
    cores: int
    memory_mb: int


def detect(lease_dir: str, environ: Mapping[str, str] = os.environ, *, slurm_expected: bool = False) -> Cluster:
    """Detect the cluster. `slurm_expected`: Slurm answered here before, so no answer means that it is down."""
    looks = look(lease_dir, environ)
    return describe(_decide(looks, environ, slurm_expected), looks, environ)


def look(lease_dir: str, environ: Mapping[str, str] = os.environ) -> Looks:
    driver = _ask_driver()
    return Looks(
        driver=driver,
        slurm=probe_slurm(environ),
        gpus=with_leases(visible(driver.gpus, environ), lease_dir),
        others=frozenset(machine.other_people()),
        cores=machine.usable_cores(),
        memory_mb=machine.usable_memory_mb(),
    )


def look_at_gpus(lease_dir: str, environ: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """Query only the GPUs."""
    return with_leases(visible(_ask_driver().gpus, environ), lease_dir)


def _ask_driver() -> Detection:
    return run_detector(timeout=DRIVER_TIMEOUT_SECONDS, samples=1, pynvml_dir=find_pynvml_dir())


def _decide(looks: Looks, environ: Mapping[str, str], slurm_expected: bool) -> ClusterType:
    """Prefer Slurm to this machine's own GPUs, which it may manage; but inside an allocation runs stay in it."""
    silent_but_there = looks.slurm.is_configured or slurm_expected
    if _ALLOCATION not in environ and (looks.slurm.answers or silent_but_there):
        return ClusterType.SLURM
    return ClusterType.LOCAL_GPU if looks.gpus else ClusterType.CPU_ONLY


def describe(kind: ClusterType, looks: Looks, environ: Mapping[str, str] = os.environ) -> Cluster:
    """Describe the machine, or the cluster around it, as one of the three types."""
    on_slurm = kind is ClusterType.SLURM
    gpus = looks.gpus if kind is ClusterType.LOCAL_GPU else ()
    gpu_count = looks.slurm.gpu_count if on_slurm else len(gpus)
    cores = (looks.slurm.cpu_count or looks.cores) if on_slurm else looks.cores
    well = looks.slurm.well  # nodes that are down are counted, but start nothing
    usable = (well.gpu_count, well.cpu_count) if on_slurm else (gpu_count, cores)
    return Cluster(
        type=kind,
        status=_health(kind, looks),
        gpus=gpus,
        gpu_count=gpu_count,
        cpu_count=cores,
        memory_total_mb=(looks.slurm.memory_mb or looks.memory_mb) if on_slurm else looks.memory_mb,
        node_count=max(1, len(looks.slurm.nodes)) if on_slurm else 1,
        head_node=socket.gethostname(),
        partitions=looks.slurm.partitions if on_slurm else (),
        nodes=looks.slurm.machines if on_slurm else (),
        shared_machine=bool(looks.others),
        gpuwrap=advise_gpuwrap(kind, bool(looks.others)),
        max_parallel=advise_parallel(kind, *usable),
        evidence=tuple(_evidence(looks, environ)),
        last_detected_at=now(),
    )


def _health(kind: ClusterType, looks: Looks) -> ClusterStatus:
    if kind is ClusterType.SLURM and not looks.slurm.answers:
        return ClusterStatus.OFFLINE
    unwell = looks.driver.errors or (kind is ClusterType.SLURM and looks.slurm.unwell)
    return ClusterStatus.DEGRADED if unwell else ClusterStatus.HEALTHY


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


def _evidence(looks: Looks, environ: Mapping[str, str]) -> list[DetectionDetail]:
    found = [DetectionDetail(looked_at="GPU driver (NVML, then nvidia-smi)", said=_driver_words(looks.driver))]
    if "CUDA_VISIBLE_DEVICES" in environ:
        found.append(
            DetectionDetail(looked_at="CUDA_VISIBLE_DEVICES of the server", said=environ["CUDA_VISIBLE_DEVICES"])
        )
    found += _slurm_evidence(looks.slurm, environ)
    found.append(DetectionDetail(looked_at="cores usable here", said=str(looks.cores)))
    words = ", ".join(sorted(looks.others)) or "nobody else"
    found.append(DetectionDetail(looked_at="other users' logins and processes", said=words))
    return found


def _slurm_evidence(slurm: SlurmProbe, environ: Mapping[str, str]) -> list[DetectionDetail]:
    found = [DetectionDetail(looked_at="Slurm (sinfo)", said=slurm.said)]
    named = [name for name in ("SLURM_CONF", _ALLOCATION) if name in environ]
    found += [DetectionDetail(looked_at=f"{name} of the server", said=environ[name]) for name in named]
    if slurm.unwell:
        found.append(
            DetectionDetail(looked_at="Slurm nodes that are not well", said=", ".join(slurm.unwell[:_NAMED_NODES]))
        )
    return found


def _driver_words(found: Detection) -> str:
    if found.errors:
        return "; ".join(found.errors)
    return f"{len(found.gpus)} GPU(s) by {found.source}" if found.gpus else "no GPU driver answers"
