"""Which kind of machine this is, derived from the evidence, and its health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from labwright.compute.cluster import detect as detection
from labwright.compute.cluster.detect import DetectionResult, describe, detect
from labwright.compute.slurm.probe import NodeRow, SlurmProbe
from labwright.domain.cluster import ClusterStatus, ClusterType
from labwright.domain.gpu import Gpu
from labwright.gpu.probe import Detection

GPU = Gpu(index=0, uuid="GPU-1", name="card", memory_total_mb=1, memory_used_mb=0, utilization=0)
NODE = NodeRow(
    node="n1",
    partition="main",
    is_default=True,
    availability="up",
    time_limit_seconds=None,
    cpus=8,
    memory_mb=64_000,
    gpus=4,
    state="idle",
)
ANSWERING = SlurmProbe(answers=True, is_configured=True, said="slurm 24.05", version="slurm 24.05", rows=(NODE,))
SILENT = SlurmProbe(is_configured=True, said="no answer")
NONE = SlurmProbe(said="sinfo is not installed")


def seen(
    monkeypatch: pytest.MonkeyPatch,
    slurm: SlurmProbe,
    gpus: tuple[Gpu, ...] = (),
    environ: Mapping[str, str] | None = None,
    errors: tuple[str, ...] = (),
    *,
    slurm_expected: bool = False,
) -> tuple[ClusterType, ClusterStatus]:
    findings = DetectionResult(
        driver=Detection(source="nvml", gpus=gpus, errors=errors),
        slurm=slurm,
        gpus=gpus,
        other_users=frozenset(),
        cores=4,
        memory_mb=1000,
    )
    monkeypatch.setattr(detection, "inspect", lambda _lease_dir, _environ: findings)
    found = detect("/leases", environ or {}, slurm_expected=slurm_expected)
    return found.type, found.status


def test_slurm_takes_precedence_over_local_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(monkeypatch, ANSWERING, (GPU,)) == (ClusterType.SLURM, ClusterStatus.HEALTHY)


def test_runs_stay_inside_an_existing_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = {"SLURM_JOB_ID": "7"}
    assert seen(monkeypatch, ANSWERING, (GPU,), inside)[0] is ClusterType.LOCAL_GPU
    assert seen(monkeypatch, ANSWERING, (), inside)[0] is ClusterType.CPU_ONLY


def test_without_slurm_the_driver_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(monkeypatch, NONE, (GPU,)) == (ClusterType.LOCAL_GPU, ClusterStatus.HEALTHY)
    assert seen(monkeypatch, NONE) == (ClusterType.CPU_ONLY, ClusterStatus.HEALTHY)
    assert seen(monkeypatch, NONE, errors=("no answer",)) == (ClusterType.CPU_ONLY, ClusterStatus.DEGRADED)


def test_configured_slurm_that_does_not_respond_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(monkeypatch, SILENT) == (ClusterType.SLURM, ClusterStatus.OFFLINE)
    assert seen(monkeypatch, NONE, slurm_expected=True) == (ClusterType.SLURM, ClusterStatus.OFFLINE)


@pytest.mark.parametrize("state", ["down", "down*", "idle*", "drained", "draining", "fail", "mixed*"])
def test_unhealthy_node_degrades_the_cluster(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    row = NodeRow(**{name: getattr(NODE, name) for name in NODE.__dataclass_fields__} | {"state": state})
    unwell = SlurmProbe(answers=True, said="", rows=(row,))
    assert seen(monkeypatch, unwell) == (ClusterType.SLURM, ClusterStatus.DEGRADED)


def test_slurm_capacity_counts_cluster_memory_and_excludes_down_nodes() -> None:
    down = replace(NODE, node="n2", state="down*")
    findings = DetectionResult(
        driver=Detection(source="none"),
        slurm=replace(ANSWERING, rows=(NODE, down)),
        gpus=(),
        other_users=frozenset(),
        cores=2,
        memory_mb=1000,
    )
    found = describe(ClusterType.SLURM, findings, {})
    assert (found.gpu_count, found.cpu_count, found.memory_total_mb) == (8, 16, 128_000)
    assert found.max_parallel == 4
